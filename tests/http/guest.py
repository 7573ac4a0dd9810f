"""A guest who asks over HTTP: a small language for what is sent and what comes back."""

import json
from typing import Any
from urllib.parse import quote

import httpx

from maitred.store.port import Store

HOST = "maitred.test"


def body(key: str = "k", who: str = "user:1", **more: Any) -> dict[str, Any]:
    """Give a body that has no fault."""
    kind, _, name = who.partition(":")
    return {
        "key": key,
        "submitter": {"type": kind, "id": name},
        "run": {"handler": "grade", "args": {"assignment": 3}},
        **more,
    }


class Guest:
    """Asks the server about one queue."""

    def __init__(self, http: httpx.AsyncClient, store: Store) -> None:
        self.http, self.store = http, store
        self.url = f"/api/v1/queues/{store.queue}"

    async def puts(self, sent: object) -> httpx.Response:
        """PUT anything that JSON can say."""
        return await self.http.put(f"{self.url}/jobs", content=json.dumps(sent))

    async def submits(self, key: str = "k", who: str = "user:1", **more: Any) -> dict[str, Any]:
        """PUT a good body; give the document."""
        answer = await self.puts(body(key, who, **more))
        assert answer.is_success, answer.text
        document: dict[str, Any] = answer.json()
        return document

    async def asks(self, verb: str, id: str, what: str = "", **more: Any) -> httpx.Response:
        """Ask something of one job."""
        return await self.http.request(verb, f"{self.url}/jobs/{quote(id, safe='')}{what}", **more)

    async def sees(self, what: str, **query: Any) -> dict[str, Any]:
        """GET something of the queue."""
        answer = await self.http.get(f"{self.url}{what}", params=query)
        assert answer.is_success, answer.text
        document: dict[str, Any] = answer.json()
        return document

    async def sees_all(self, what: str, **query: Any) -> list[dict[str, Any]]:
        """GET every page of a list."""
        page = await self.sees(what, **query)
        items: list[dict[str, Any]] = page["items"]
        while page["next"]:
            page = await self.sees(what, **query, cursor=page["next"])
            items += page["items"]
        return items


def is_problem(answer: httpx.Response, status: int, code: str) -> bool:
    """Tell whether the answer is that problem, in the right dress."""
    problem = answer.json()
    return bool(
        answer.status_code == status == problem["status"]
        and answer.headers["content-type"] == "application/problem+json"
        and problem["type"] == f"urn:maitred:problem:{code}"
        and problem["title"]
        and problem["detail"]
    )
