"""The jobs of a state in the order of their entries, and the notice that entries came or went.

ZooKeeper lists all names of a node or none, and its watches fire once. So a list is kept here and taken from
without asking, and read again only after a watch has fired: at most once a second, and less often where
reading takes long. What has ended is never listed.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Iterable

from maitred.store.zookeeper.session import Session
from maitred.store.zookeeper.tree import Tree, read_entry

PAUSE = 1.0
SHARE = 20


class Listing:
    """The index of one state, kept up with by a watch."""

    def __init__(self, session: Session, path: str) -> None:
        self.session, self.path = session, path
        self.names: list[str] = []
        self.reads = 0
        self.fresh = False
        self.changed = asyncio.Event()
        self._cost = 0.0
        self._read_at = float("-inf")

    def _fired(self) -> None:
        self.fresh = False
        self.changed.set()

    @property
    def wait(self) -> float:
        """How long, in seconds, the next reading should wait."""
        return max(0.0, self._read_at + max(PAUSE, SHARE * self._cost) - time.monotonic())

    async def read(self) -> list[str]:
        """Read the names anew, in order, and watch for the next change."""
        self.changed.clear()
        self.fresh = True
        began = time.monotonic()
        try:
            names = await self.session.children(self.path, watch=self._fired)
        except BaseException:
            self._fired()
            raise
        self._read_at = time.monotonic()
        self._cost, self.reads = self._read_at - began, self.reads + 1
        self.names = sorted(names or [])
        return self.names


class Pending:
    """Gives the next jobs of a state to whoever takes them, without a list for each.

    The order is that of the last reading: a job that came since is seen within about a second. Callers check
    by lock and status version that a job is still theirs to take.
    """

    def __init__(self, session: Session, tree: Tree, state: str) -> None:
        self.listing = Listing(session, tree.state(state))
        self._left: list[str] = []

    async def next(self) -> str | None:
        """Give the next job by its id; None if there is none that was not given already."""
        if not self.listing.fresh and not self.listing.wait:
            self._left = list(reversed(await self.listing.read()))
        while self._left:
            if jid := read_entry(self._left.pop()):
                return jid
        return None

    async def first(self, count: int) -> list[str]:
        """Give the first jobs by their ids, without taking them."""
        if not self.listing.fresh:
            await self.listing.read()
        jids = (read_entry(name) for name in self.listing.names)
        return [jid for jid, _ in zip((jid for jid in jids if jid), range(count), strict=False)]


class Changes:
    """Tells which jobs were made or moved in the tree, by us or by another program."""

    def __init__(self, session: Session, tree: Tree, states: Iterable[str]) -> None:
        self.listings = [Listing(session, tree.state(state)) for state in states]

    async def everything(self) -> set[str]:
        """Read all lists, so that `follow` tells what comes after; give the jobs that they name."""
        found: set[str] = set()
        for listing in self.listings:
            found |= _jids(await listing.read())
        return found

    async def follow(self) -> AsyncGenerator[set[str], None]:
        """Give the jobs whose entries came or went, set after set, without end."""
        while True:
            fired = [listing for listing in self.listings if listing.changed.is_set()]
            due = [listing for listing in fired if not listing.wait]
            if not due:
                await self._rest(fired)
                continue
            changed: set[str] = set()
            for listing in due:
                before = set(listing.names)
                changed |= _jids(before.symmetric_difference(await listing.read()))
            if changed:
                yield changed

    async def _rest(self, fired: list[Listing]) -> None:
        """Wait until a watch fires, or until what has fired may be read."""
        waits = [asyncio.ensure_future(each.changed.wait()) for each in self.listings if each not in fired]
        soonest = min((listing.wait for listing in fired), default=None)
        try:
            if waits:
                await asyncio.wait(waits, timeout=soonest, return_when=asyncio.FIRST_COMPLETED)
            elif soonest is not None:
                await asyncio.sleep(soonest)
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)


def _jids(names: Iterable[str]) -> set[str]:
    return {jid for name in names if (jid := read_entry(name))}
