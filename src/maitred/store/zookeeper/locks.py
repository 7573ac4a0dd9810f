"""Locks on a batch or a job: ephemeral nodes that end with the session that made them.

A lock says who has it, where, and since when; only its owner gives it up. It keeps others from beginning; it
is no fence, since one that is made again looks like the first: what is written under a lock checks the
version of the STATUS node.
"""

import contextlib
import socket
from dataclasses import dataclass
from functools import partial

import msgspec

from maitred.errors import NotFound
from maitred.store.zookeeper.session import Create, Delete, Node, Refused, Session, certain

HOST = socket.gethostname()


class Claim(msgspec.Struct, frozen=True):
    """What a lock says."""

    owner: str
    host: str = ""
    since: int = 0
    token: str = ""


@dataclass(frozen=True, slots=True)
class Lock:
    """A lock that was taken, by which session and with which token."""

    path: str
    claim: Claim
    session: int


class Locks:
    """Takes and gives up locks in one session."""

    def __init__(self, session: Session) -> None:
        self.session = session

    async def take(self, item: str, owner: str, token: bytes, now: int) -> Lock | None:
        """Lock an item by its path; None if somebody has it, NotFound if there is no such item."""
        path, claim = f"{item}/lock", Claim(owner, HOST, now, token.hex())
        ops = [Create(path, msgspec.json.encode(claim), ephemeral=True)]
        try:
            await certain(self.session, ops, partial(self._ours, path, claim))
        except Refused as refused:
            if refused.why == "missing":
                raise NotFound(f"there is no {item}") from None
            return None
        return Lock(path, claim, self.session.id)

    async def give_up(self, lock: Lock) -> bool:
        """Give a lock up; False if it was no longer the caller's, and then nothing is changed."""
        if not await self.holds(lock):
            return False
        try:
            await certain(self.session, [Delete(lock.path)], partial(self._given_up, lock))
        except Refused:
            return False
        return True

    async def drop(self, path: str) -> None:
        """Delete the node of a lock that its owner knows to be its own."""

        async def gone() -> bool:
            return await self.session.stat(path) is None

        with contextlib.suppress(Refused):
            await certain(self.session, [Delete(path)], gone)

    async def holds(self, lock: Lock) -> bool:
        """Tell whether a lock is still the caller's."""
        return lock.session == self.session.id and await self._ours(lock.path, lock.claim)

    async def holder(self, item: str) -> Claim | None:
        """Say who has an item; None if it is free. One that another program locked has no name."""
        node = await self.session.get(f"{item}/lock")
        return _claim(node) if node else None

    async def _given_up(self, lock: Lock) -> bool:
        return not await self._ours(lock.path, lock.claim)

    async def _ours(self, path: str, claim: Claim) -> bool:
        node = await self.session.get(path)
        return node is not None and node.owner == self.session.id and _claim(node) == claim


def _claim(node: Node) -> Claim:
    try:
        return msgspec.json.decode(node.data, type=Claim)
    except msgspec.MsgspecError:
        return Claim("")
