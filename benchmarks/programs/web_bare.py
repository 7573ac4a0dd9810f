"""The least that a FastAPI endpoint can do with the body of a job: read the JSON, and answer with it.

It runs on the same server software with the same settings. Nothing is checked, stored or told to anybody.
"""

from typing import Annotated, Any

import uvloop
from fastapi import Body, FastAPI

from benchmarks.programs.desk import Desk
from benchmarks.programs.web import serve
from maitred.http import take_port

app = FastAPI()


@app.put("/api/v1/queues/{queue}/jobs", status_code=201)
async def put(queue: str, body: Annotated[dict[str, Any], Body()]) -> dict[str, Any]:
    return {"queue": queue, **body}


async def main() -> None:
    with take_port("127.0.0.1", 0) as taken:
        await serve(app, taken, Desk())


if __name__ == "__main__":
    uvloop.run(main())
