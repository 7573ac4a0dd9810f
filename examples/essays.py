"""What both web apps have in common: where the queue is, what they submit, and what they show of it."""

import os
from typing import Any

from maitred.client import Client
from maitred.wire import JobDocument

QUEUE = "default"


def queue() -> Client:
    """Give a client of the server that the environment names, with the key if one is needed."""
    address = os.environ.get("MAITRED_URL", "http://127.0.0.1:7500")
    return Client(address, key=os.environ.get("MAITRED_KEY"))


async def submit(client: Client, student: str, text: str) -> JobDocument:
    """Submit an essay. While it waits, another one of the same student takes its place in line."""
    own_address = os.environ.get("PUBLIC_URL", "http://127.0.0.1:8000")
    return await client.put(
        QUEUE,
        {
            "key": f"essay/{student}",
            "submitter": {"type": "user", "id": student},
            "run": {"handler": "grade", "args": {"text": text}},
            "response_url": f"{own_address}/maitred",
        },
    )


def shown(job: JobDocument) -> dict[str, Any]:
    """Give what a student wants to know of a job."""
    return {
        "state": job.state,
        "position": job.position,
        "because": job.waiting_for and job.waiting_for.text,
        "expected": job.estimate and job.estimate.expected,
        "result": job.result,
    }


def secrets() -> list[str]:
    """Give what callbacks are signed with: what `maitred keys secret` shows."""
    return os.environ["WEBHOOK_SECRETS"].split()
