"""A bare FastAPI endpoint with the same body: it reads it into the same model, and answers with it.

It runs on the same server software with the same settings. Nothing is stored, foreseen or told to anybody.
"""

import uvloop
from fastapi import FastAPI

from benchmarks.programs.desk import Desk
from benchmarks.programs.web import serve
from maitred.http import take_port
from maitred.wire import JobBody

app = FastAPI()


@app.put("/api/v1/queues/{queue}/jobs", status_code=201)
async def put(queue: str, body: JobBody) -> JobBody:
    del queue
    return body


async def main() -> None:
    with take_port("127.0.0.1", 0) as taken:
        await serve(app, taken, Desk())


if __name__ == "__main__":
    uvloop.run(main())
