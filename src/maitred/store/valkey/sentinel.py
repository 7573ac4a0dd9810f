"""A store behind sentinels: who is the primary now, and that calls go there.

One sentinel after the other is asked, from the next one each time: one that was away for a while may still
name the old primary, and the connection to that is refused by its role. An old primary that lives on, since
it was only slow or is replaced by hand, takes calls for many seconds until it is told. All of them would be
lost, so the sentinels are asked once a second whether it still is the one.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable
from typing import Any
from weakref import WeakSet

from maitred.address import Address, Site
from maitred.errors import StoreUnavailable
from maitred.store.valkey.board import OneServer
from maitred.store.valkey.connection import Connection, ReplyError

# One that says nothing must not keep us long from asking the next.
PATIENCE = 1.0
LOOK_EVERY = 1.0


class Sentinels:
    """Those who watch over a primary and its replicas, and know which of them is the primary now."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._ring = deque((member, Connection(member)) for member in site.members)

    async def primary(self) -> Address:
        """Give where the primary is; StoreUnavailable if no sentinel can tell."""
        reasons = []
        for _ in range(len(self._ring)):
            at, sentinel = self._ring[0]
            self._ring.rotate(-1)
            try:
                async with asyncio.timeout(PATIENCE):
                    found = await sentinel.call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self._site.name)
                if found:
                    return self._site.server.moved(found[0].decode(), int(found[1]))
                reason = f"it knows no primary of the name {self._site.name!r}"
            except (StoreUnavailable, ReplyError) as error:
                reason = str(error)
            except TimeoutError:
                reason = "no answer in time"
            reasons.append(f"{at.host}:{at.port}: {reason}")
        raise StoreUnavailable(
            f"the store does not answer: no sentinel names its primary ({'; '.join(reasons)})"
        )

    def close(self) -> None:
        """Hang up."""
        for _, sentinel in self._ring:
            sentinel.close()


class Primary(OneServer):
    """The server that sentinels name now."""

    def __init__(self, site: Site) -> None:
        self._sentinels = Sentinels(site)
        super().__init__(site, self._sentinels.primary)
        self._connections = WeakSet([self._shared])
        self._watching: asyncio.Task[None] | None = None

    def call(self, key: str, *args: Any) -> Awaitable[Any]:
        """Send a command, and keep an eye on where it goes."""
        if self._watching is None:
            self._watching = asyncio.create_task(self._watch())
        return super().call(key, *args)

    def parked(self, key: str) -> Connection:
        """Give a connection that may block."""
        connection = super().parked(key)
        self._connections.add(connection)
        return connection

    async def _watch(self) -> None:
        """Leave a server that is no longer the one, for as long as this is in use."""
        while True:
            await asyncio.sleep(LOOK_EVERY)
            with contextlib.suppress(StoreUnavailable, ReplyError):
                await self._look()

    async def _look(self) -> None:
        named = await self._sentinels.primary()
        if all(connection.at in (None, named) for connection in self._connections):
            return
        # One sentinel may be behind; what it names has to be a primary, too.
        probe = Connection(self._sentinels.primary)
        try:
            await probe.call("PING")
            for connection in [each for each in self._connections if each.at not in (None, probe.at)]:
                connection.close()
        finally:
            probe.close()

    def close(self) -> None:
        """Hang up."""
        super().close()
        self._sentinels.close()
        if self._watching is not None:
            self._watching.cancel()
