"""The switchboard: which server a call goes to.

Every call names a key. On one server, or behind sentinels (`sentinel.py`), all keys are in one place; in a
cluster each node has some of the slots (`cluster.py`).
"""

from collections.abc import Awaitable
from typing import Any, Protocol

from maitred.address import Address, Site
from maitred.errors import StoreUnavailable
from maitred.store.valkey.connection import Connection, Finder, ReplyError

# How long the server waits for its replicas before it tells how many have a change.
REPLICATION_PATIENCE = 2.0


class Board(Protocol):
    """The connections to a store. Calls raise what `Connection.call` does."""

    def call(self, key: str, *args: Any) -> Awaitable[Any]:
        """Send a command to the server that has the key; give its answer."""

    def kept(self, key: str, *args: Any) -> Awaitable[Any]:
        """Send a command, and give its answer once as many replicas have what it did as are asked for."""

    async def everywhere(self, *args: Any) -> list[Any]:
        """Send a command to every primary; give all answers."""

    async def ping(self) -> None:
        """Raise StoreUnavailable unless all of the store can be used."""

    def parked(self, key: str) -> Connection:
        """Give a new connection to the server that has the key, for calls that block there."""

    async def moved(self, error: ReplyError) -> bool:
        """Tell whether a refusal says that a key is elsewhere now; then that is known from now on."""

    def close(self) -> None:
        """Hang up."""


class OneServer:
    """All keys are on one server: the one that is named, or one that is found anew for each connection."""

    def __init__(self, site: Site, find: Finder | None = None) -> None:
        self._where: Address | Finder = find or site.server
        self._shared = Connection(self._where)
        self._replicas = site.replicas

    def call(self, key: str, *args: Any) -> Awaitable[Any]:  # noqa: ARG002 - there is one place for all keys
        """Send a command."""
        return self._shared.call(*args)

    async def kept(self, key: str, *args: Any) -> Any:  # noqa: ARG002 - there is one place for all keys
        """Send a command and wait for the replicas."""
        answer, replicas = await self._shared.call_together(args, wait_for(self._replicas))
        if replicas < self._replicas:
            # It may be an old primary that its replicas have left; the next call finds out.
            self._shared.close()
            raise too_few(self._replicas, replicas)
        return answer

    async def everywhere(self, *args: Any) -> list[Any]:
        """Send a command to the one."""
        return [await self._shared.call(*args)]

    async def ping(self) -> None:
        """See that it answers."""
        await self._shared.call("PING")

    def parked(self, key: str) -> Connection:  # noqa: ARG002 - there is one place for all keys
        """Give a connection that may block."""
        return Connection(self._where, patience=None)

    async def moved(self, error: ReplyError) -> bool:  # noqa: ARG002 - no key can be elsewhere
        """Tell that it does not."""
        return False

    def close(self) -> None:
        """Hang up."""
        self._shared.close()


def wait_for(replicas: int) -> tuple[Any, ...]:
    """Give the command that waits until so many replicas have all that was sent on its connection before."""
    return ("WAIT", replicas, round(REPLICATION_PATIENCE * 1000))


def too_few(wanted: int, found: int) -> StoreUnavailable:
    """Give the refusal to call a change safe that too few replicas have."""
    return StoreUnavailable(f"the store is not ready: {found} of {wanted} replicas had a change in time")
