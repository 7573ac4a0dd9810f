"""A FastAPI app whose slow work is done by a queue.

A request submits a job, another shows its place, its estimate and its result, and the queue tells the app of
the end by a signed callback. In two terminals:

    maitred up --app examples.grading
    WEBHOOK_SECRETS=$(maitred keys secret) uvicorn examples.fastapi_app:app --port 8000

    curl -s http://127.0.0.1:8000/essays/ada -H content-type:application/json -d '{"text": "Call me Ada."}'
    curl -s http://127.0.0.1:8000/essays/ada
    curl -s http://127.0.0.1:8000/grades
"""

import json
import os
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import Depends, FastAPI, HTTPException, Request
from pydantic import BaseModel

import maitred
from maitred.client import Client
from maitred.wire import JobDocument

QUEUE = "default"
app = FastAPI()
submitted: dict[str, str] = {}
grades: dict[str, Any] = {}
seen: set[str] = set()


class Essay(BaseModel):
    text: str


async def maitred_client() -> AsyncIterator[Client]:
    address = os.environ.get("MAITRED_URL", "http://127.0.0.1:7500")
    async with Client(address, key=os.environ.get("MAITRED_KEY")) as client:
        yield client


Queue = Annotated[Client, Depends(maitred_client)]


@app.post("/essays/{student}", status_code=202)
async def submit(student: str, essay: Essay, client: Queue) -> dict[str, Any]:
    """Submit an essay. While it waits, another one of the same student takes its place in line."""
    own_address = os.environ.get("PUBLIC_URL", "http://127.0.0.1:8000")
    job = await client.put(
        QUEUE,
        {
            "key": f"essay/{student}",
            "submitter": {"type": "user", "id": student},
            "run": {"handler": "grade", "args": {"text": essay.text}},
            "response_url": f"{own_address}/maitred",
        },
    )
    submitted[student] = job.id
    return shown(job)


@app.get("/essays/{student}")
async def look(student: str, client: Queue) -> dict[str, Any]:
    if student not in submitted:
        raise HTTPException(404)
    return shown(await client.job(QUEUE, submitted[student]))


@app.post("/maitred", status_code=204)
async def told(request: Request) -> None:
    """Hear from the queue: the signature tells that it is the queue, the id whether it was heard before."""
    body = await request.body()
    try:
        id = maitred.webhooks.verify(os.environ["WEBHOOK_SECRETS"].split(), request.headers, body)
    except maitred.UnverifiedWebhook as error:
        raise HTTPException(401) from error
    message = json.loads(body)
    if id not in seen and message["type"] == "job.ended":
        grades[message["data"]["submitter"]["id"]] = message["data"]["result"]
    seen.add(id)


@app.get("/grades")
async def all_grades() -> dict[str, Any]:
    return grades


def shown(job: JobDocument) -> dict[str, Any]:
    """Give what a student wants to know of a job."""
    return {
        "state": job.state,
        "position": job.position,
        "because": job.waiting_for and job.waiting_for.text,
        "expected": job.estimate and job.estimate.expected,
        "result": job.result,
    }
