"""`check` finds damage to what runs said and left behind, names it, and repairs it."""

from typing import Any

import pytest
from redis.asyncio import Redis

from maitred.core.job import Order
from maitred.core.output import Artifact, Part, Saying
from maitred.core.settings import Settings
from maitred.store.port import Store
from maitred.store.valkey import keys
from tests.conformance.damage import every, found, healed
from tests.conformance.party import NEED, U1
from tests.conftest import SERVERS

GHOST = b"\0\0\0\0\0\0\0\7"
HEAD = b""


@pytest.fixture(params=SERVERS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class Kept:
    """A queue with a run that said and left something; it gives the full names of keys."""

    def __init__(self, queue: str, record: int) -> None:
        self.prefix, self.record = keys.prefix(queue).encode(), record.to_bytes(8, "big")

    def __call__(self, name: bytes) -> bytes:
        return self.prefix + name

    @property
    def output(self) -> bytes:
        return self(b"Output." + self.record)

    @property
    def artifacts(self) -> bytes:
        return self(b"Artifacts." + self.record)


@pytest.fixture
async def kept(store: Store) -> Kept:
    await store.configure(Settings(lease=10**12))
    await store.put([Order("j", U1, NEED, b"")])
    [start] = (await store.join("w", 1, [NEED], b"{}")).starts
    await store.say("w", [Saying(start.lease, tuple(Part("stdout", b"%d" % n) for n in range(5)))])
    await store.keep("w", start.lease, [Artifact("a", "text/plain", b"1"), Artifact("b", "", b"")])
    assert await store.check(repair=True) == []
    return Kept(store.queue, start.lease.record)


async def strange_stream(server: "Redis", kept: Kept) -> None:
    pieces: Any = await server.hgetall(kept.output)
    await server.hset(kept(b"Output." + GHOST), mapping=pieces)


async def lost_piece(server: "Redis", kept: Kept) -> None:
    await server.hdel(kept.output, b"3")


async def strange_piece(server: "Redis", kept: Kept) -> None:
    piece: Any = await server.hget(kept.output, "1")
    await server.hset(kept.output, "8", piece)


async def longer_piece(server: "Redis", kept: Kept) -> None:
    piece: Any = await server.hget(kept.output, "1")
    await server.hset(kept.output, "1", piece + b"more")


async def lost_head(server: "Redis", kept: Kept) -> None:
    await server.hdel(kept.output, HEAD)


async def strange_files(server: "Redis", kept: Kept) -> None:
    files: Any = await server.hgetall(kept.artifacts)
    await server.hset(kept(b"Artifacts." + GHOST), mapping=files)


async def strange_file(server: "Redis", kept: Kept) -> None:
    await server.hset(kept.artifacts, "c", b"\0\0")


async def lost_file(server: "Redis", kept: Kept) -> None:
    await server.hdel(kept.artifacts, "b")


async def lost_files(server: "Redis", kept: Kept) -> None:
    await server.delete(kept.artifacts)


async def longer_file(server: "Redis", kept: Kept) -> None:
    await server.hset(kept.artifacts, "b", b"\0\0more")


async def strange_about(server: "Redis", kept: Kept) -> None:
    await server.hset(kept(b"About"), "ghost", "{}")


DAMAGE = {
    "output": [strange_stream, lost_piece, strange_piece, longer_piece, lost_head],
    "artifact": [strange_files, strange_file, lost_file, lost_files, longer_file],
    "worker": [strange_about],
}


@every(DAMAGE)
async def test_damage_is_found_named_and_repaired(
    store: Store, server: "Redis", kept: Kept, code: str, damage: Any
) -> None:
    await damage(server, kept)
    assert await found(store) == {code}
    await healed(store)


async def test_what_is_left_of_a_torn_stream_is_its_end(store: Store, server: "Redis", kept: Kept) -> None:
    await lost_piece(server, kept)
    await store.check(repair=True)
    output = await store.output("j", None, 0, 9)
    assert output
    assert [chunk.number for chunk in output.chunks] == [4, 5]
    assert (output.first, output.last) == (4, 5)
