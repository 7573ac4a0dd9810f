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
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import Depends, FastAPI, HTTPException, Request
from pydantic import BaseModel

import maitred
from examples import essays
from maitred.client import Client

app = FastAPI()
submitted: dict[str, str] = {}
grades: dict[str, Any] = {}
seen: set[str] = set()


class Essay(BaseModel):
    text: str


async def queue() -> AsyncIterator[Client]:
    async with essays.queue() as client:
        yield client


Queue = Annotated[Client, Depends(queue)]


@app.post("/essays/{student}", status_code=202)
async def submit(student: str, essay: Essay, client: Queue) -> dict[str, Any]:
    job = await essays.submit(client, student, essay.text)
    submitted[student] = job.id
    return essays.shown(job)


@app.get("/essays/{student}")
async def look(student: str, client: Queue) -> dict[str, Any]:
    if student not in submitted:
        raise HTTPException(404)
    return essays.shown(await client.job(essays.QUEUE, submitted[student]))


@app.post("/maitred", status_code=204)
async def told(request: Request) -> None:
    """Hear from the queue: the signature tells that it is the queue, the id whether it was heard before."""
    body = await request.body()
    try:
        id = maitred.webhooks.verify(essays.secrets(), request.headers, body)
    except maitred.UnverifiedWebhook as error:
        raise HTTPException(401) from error
    message = json.loads(body)
    if id not in seen and message["type"] == "job.ended":
        grades[message["data"]["submitter"]["id"]] = message["data"]["result"]
    seen.add(id)


@app.get("/grades")
async def all_grades() -> dict[str, Any]:
    return grades
