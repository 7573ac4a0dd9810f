"""Finds the primary of a store behind sentinels.

One sentinel after the other is asked, from the next one each time: one that was away for a while may still
name the old primary, and the connection to that is refused by its role.
"""

import asyncio
from collections import deque

from maitred.address import Address, Site
from maitred.errors import StoreUnavailable
from maitred.store.valkey.connection import Connection, ReplyError

# One that says nothing must not keep us long from asking the next.
PATIENCE = 1.0


class Sentinels:
    """Those who watch over a primary and its replicas, and know which of them is the primary now."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._ring = deque(site.members)

    async def primary(self) -> Address:
        """Give where the primary is; StoreUnavailable if no sentinel can tell."""
        reasons = []
        for _ in range(len(self._ring)):
            sentinel = self._ring[0]
            self._ring.rotate(-1)
            try:
                host, port = await self._ask(sentinel)
                return self._site.server.moved(host.decode(), int(port))
            except (StoreUnavailable, ReplyError, LookupError) as error:
                reasons.append(f"{sentinel.host}:{sentinel.port}: {error}")
            except TimeoutError:
                reasons.append(f"{sentinel.host}:{sentinel.port}: no answer in time")
        raise StoreUnavailable(
            f"the store does not answer: no sentinel names its primary ({'; '.join(reasons)})"
        )

    async def _ask(self, sentinel: Address) -> tuple[bytes, bytes]:
        connection = Connection(sentinel)
        try:
            async with asyncio.timeout(PATIENCE):
                found = await connection.call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self._site.name)
        finally:
            connection.close()
        if found is None:
            raise LookupError(f"it knows no primary of the name {self._site.name!r}")
        host, port = found
        return host, port
