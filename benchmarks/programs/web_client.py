"""A client that costs little: some connections, each of which sends the next request when it has its answer.

It writes and reads HTTP by itself: a client library would take longer than the servers that are measured.
"""

import asyncio
import itertools
import json
import time
from collections.abc import Iterator, Sequence
from typing import Any, cast

import uvloop

from benchmarks.programs.desk import Desk

_SUBMITTERS = 1_000
_JOBS = "/api/v1/queues/bench/jobs"
_numbers = itertools.count()


class Connection(asyncio.Protocol):
    """Sends request after request, until there are no more of them."""

    def __init__(self, requests: Iterator[bytes], good: bytes) -> None:
        self._requests, self._good = requests, good
        self._buffer = b""
        self._transport: asyncio.Transport | None = None
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._send()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, found, rest = self._buffer.partition(b"\r\n\r\n")
        if not found or len(rest) < _length(head):
            return
        if head.split(b" ", 2)[1] != self._good:
            self._end(RuntimeError(self._buffer[:500].decode(errors="replace")))
        self._buffer = b""
        self._send()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(exc or RuntimeError("the server closed the connection"))

    def _send(self) -> None:
        assert self._transport is not None
        request = next(self._requests, None)
        if request is None:
            self._end(None)
            self._transport.close()
        else:
            self._transport.write(request)

    def _end(self, error: Exception | None) -> None:
        if self.done.done():
            return
        if error is None:
            self.done.set_result(None)
        else:
            self.done.set_exception(error)


def _length(head: bytes) -> int:
    """Give how long the body is; the servers write the name of that header in small letters."""
    return int(head.partition(b"\r\ncontent-length: ")[2].partition(b"\r")[0])


def _body() -> dict[str, Any]:
    number = next(_numbers)
    return {
        "key": f"job-{number}",
        "submitter": {"type": "user", "id": str(number % _SUBMITTERS)},
        "run": {"handler": "noop", "args": {"number": number}},
        "metadata": {"course": "cs101"},
    }


def _request(verb: str, path: str, port: int, body: object) -> bytes:
    content = json.dumps(body).encode()
    head = (
        f"{verb} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content


async def _take(port: int, connections: int, requests: Sequence[bytes], good: bytes) -> int:
    """Send all requests; give the nanoseconds that it took."""
    loop = asyncio.get_running_loop()
    waiting = iter(requests)
    begun = time.monotonic_ns()
    made = [
        await loop.create_connection(lambda: Connection(waiting, good), "127.0.0.1", port)
        for _ in range(connections)
    ]
    await asyncio.gather(*(protocol.done for _, protocol in made))
    return time.monotonic_ns() - begun


async def single(port: int, connections: int, jobs: int) -> int:
    """Submit jobs by a PUT for each."""
    requests = [_request("PUT", _JOBS, port, _body()) for _ in range(jobs)]
    return await _take(port, connections, requests, b"201")


async def bulk(port: int, connections: int, jobs: int, per_call: int) -> int:
    """Submit jobs in lists."""
    lists = [[_body() for _ in range(per_call)] for _ in range(jobs // per_call)]
    requests = [_request("POST", f"{_JOBS}/many", port, bodies) for bodies in lists]
    return await _take(port, connections, requests, b"207")


def main(desk: Desk) -> None:
    desk.say(ready=True)
    for request in desk.requests():
        words: dict[str, Any] = dict(request)
        way = bulk if words.pop("do") == "bulk" else single
        try:
            desk.say(nanoseconds=uvloop.run(way(**words)))
        except (RuntimeError, OSError) as error:
            desk.say(error=repr(error))


if __name__ == "__main__":
    main(Desk())
