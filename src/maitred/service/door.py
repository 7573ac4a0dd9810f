"""The door: where it is seen who comes in.

While no key was made, whoever calls from this machine is let in as an admin. From the first key on, and for
ever, a key is needed, on loopback too. The keys are remembered for a second at most: what is revoked at this
server counts here at once, at others within that second.
"""

import functools
import ipaddress
import time
from collections.abc import Callable

from maitred.errors import StoreError, Unauthorized
from maitred.service.caller import HOUSE, Caller
from maitred.service.keyring import Keys, Ring
from maitred.service.meter import Meter

KEPT = 1.0
_SCHEME = "bearer"


class Door:
    """Knows callers by their keys, and by the `meter` how often each calls.

    `StoreUnavailable` if the keys cannot be read.
    """

    def __init__(
        self,
        keys: Keys,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        meter: Meter | None = None,
    ) -> None:
        self._keys = keys
        self.meter = meter or Meter(None)
        self._clock, self._wall = clock, wall
        self._ring: Ring | None = None
        self._until = 0.0
        self._guarded = False
        self._changes = 0

    async def guarded(self) -> bool:
        """Tell whether a key is needed. Once it is, it stays so, also while the store is away."""
        if not self._guarded:
            self._guarded = (await self._read()).any_made
        return self._guarded

    async def admit(self, header: str | None, address: str) -> Caller:
        """Give whoever sends this `Authorization`; `Unauthorized` if nobody is known by it."""
        return await self.admit_key(_key_in(header), address)

    async def admit_key(self, key: str | None, address: str) -> Caller:
        """Give whoever has this key.

        Raises `Unauthorized` if nobody has, or if there is none and one is needed; `TooOften`.
        """
        ring = await self._read()
        if not ring.any_made and not self._guarded:
            if not is_loopback(address):
                raise Unauthorized("there are no keys yet: only callers on the server's own host are let in")
            return Caller(HOUSE.key, address)
        self._guarded = True
        if key is None:
            raise Unauthorized
        record = ring.find(key, self._wall())
        if record is None:
            raise Unauthorized("the key is not good: it is unknown, expired or revoked")
        self.meter.count(record.id)
        return Caller(record, address)

    async def still(self, caller: Caller) -> bool:
        """Tell whether somebody who was let in may stay; while the store is away, they may."""
        try:
            ring = await self._read()
        except StoreError:
            return True
        if caller.key.id == HOUSE.key.id:
            return not ring.any_made
        return ring.still(caller.key, self._wall())

    def forget(self) -> None:
        """Read the keys anew for whoever comes next: they were changed."""
        self._changes += 1
        self._until = 0.0

    async def _read(self) -> Ring:
        if self._ring is None or self._clock() >= self._until:
            before, until = self._changes, self._clock() + KEPT
            ring = await self._keys.good()
            if before != self._changes:
                # Changed while they were read: what was read is for nobody after this caller.
                return ring
            self._ring, self._until = ring, until
        return self._ring


@functools.lru_cache(maxsize=256)
def is_loopback(address: str) -> bool:
    """Tell whether an address is this machine's own."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    mapped = getattr(found, "ipv4_mapped", None)
    return (mapped or found).is_loopback


def _key_in(header: str | None) -> str | None:
    """Give the key of an `Authorization`; None if there is none, or it is of another kind."""
    scheme, _, key = (header or "").strip().partition(" ")
    return key.strip() if scheme.lower() == _SCHEME and key.strip() else None
