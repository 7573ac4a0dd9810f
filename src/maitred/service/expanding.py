"""Filling a batch: its entries are checked and put in by large calls, under the batch's lock.

A manifest is read to its end before the first job is made: one with a bad line makes no job at all. What the
store refuses of a good one is named in the fault that the batch ends with; the rest is in.
"""

import asyncio
from collections.abc import Iterator
from itertools import islice

from maitred.core.job import Order, Put, Refusal
from maitred.core.settings import SECOND, Settings
from maitred.errors import LockLost, MaitredError
from maitred.service.caller import HOUSE, Caller
from maitred.service.expansion import Entry, entries, manifest, needs_payload
from maitred.service.fetch import FetchFailed, fetch
from maitred.service.intake import CHECKED_AT_ONCE, JOBS_PER_CALL, not_own, refused
from maitred.service.manifests import MOST_FAULTS, BadManifest, LineFault, ManifestRow
from maitred.service.order import allowed_by, order_of
from maitred.store.port import Store
from maitred.wire import BatchBody

FETCH_TRIES = 3
MOST_NAMED = 20


class Expanding:
    """The expansion of one batch by the owner of its lock."""

    def __init__(
        self,
        store: Store,
        id: str,
        token: bytes,
        settings: Settings,
        *,
        caller: Caller = HOUSE,
        pause: float = 1.0,
    ) -> None:
        """`caller` sent the batch; `pause` is how long it waits when the queue is full."""
        self._store = store
        self._id = id
        self._token = token
        self._settings = settings
        self._caller = caller
        self._pause = pause
        self._refused: list[str] = []
        self._count = 0

    async def fill(self, body: BatchBody) -> str:
        """Put in all that can be; give the fault with which the batch ends, empty if there is none.

        Raises `LockLost` if the batch is another's by now, or gone.
        """
        payload = None
        try:
            if needs_payload(body):
                payload = await self._fetched(body.payload_filename or "")
            await self._check(manifest(body, payload))
        except FetchFailed as error:
            return f"the payload could not be fetched: {error}"
        except BadManifest as error:
            more = " (and perhaps more)" if len(error.faults) == MOST_FAULTS else ""
            return f"the manifest has {len(error.faults)} faults{more}: {error}"
        found = entries(self._id, body, payload)
        while chunk := list(islice(found, JOBS_PER_CALL)):
            await self._put(chunk)
        return self._fault()

    async def _fetched(self, url: str) -> bytes:
        """Get the manifest; an address that does not answer is asked again, a few times."""
        for tries in range(FETCH_TRIES - 1):
            try:
                return await fetch(url, private=self._settings.private_addresses)
            except FetchFailed as error:
                if not error.again:
                    raise
            await asyncio.sleep(min(self._settings.backoff << tries, self._settings.most_backoff) / SECOND)
        return await fetch(url, private=self._settings.private_addresses)

    async def _check(self, found: Iterator[ManifestRow | LineFault]) -> None:
        """Read all of the manifest; BadManifest if a line is wrong."""
        faults = []
        for number, item in enumerate(found):
            if number % JOBS_PER_CALL == 0:
                await asyncio.sleep(0)
            if isinstance(item, LineFault):
                faults.append(item)
                if len(faults) == MOST_FAULTS:
                    break
        if faults:
            raise BadManifest(faults)

    async def _put(self, chunk: list[Entry]) -> None:
        self._count += len(chunk)
        allowed = allowed_by(self._settings)
        orders: list[tuple[Entry, Order]] = []
        for number, entry in enumerate(chunk):
            if number % CHECKED_AT_ONCE == 0:
                await asyncio.sleep(0)
            try:
                order = order_of(entry.body, self._settings, allowed, self._caller.key.id)
                order = self._caller.order(order._replace(exempt=True), self._settings)
            except MaitredError as error:
                self._refuse(entry, error)
            else:
                orders.append((entry, order._replace(only_new=True, token=self._token)))
        if self._caller.limited:
            orders = await self._own(orders)
        while orders:
            orders = await self._send(orders)
            if orders:
                await asyncio.sleep(self._pause)

    async def _own(self, orders: list[tuple[Entry, Order]]) -> list[tuple[Entry, Order]]:
        """Keep the orders that touch nothing of other submitters."""
        errors = await not_own(self._store, [order for _, order in orders], self._caller)
        for (entry, _), error in zip(orders, errors, strict=True):
            if error:
                self._refuse(entry, error)
        return [each for each, error in zip(orders, errors, strict=True) if not error]

    async def _send(self, orders: list[tuple[Entry, Order]]) -> list[tuple[Entry, Order]]:
        """Make one call; give what has to wait until the queue has room."""
        later = []
        answers = await self._store.put([order for _, order in orders])
        for (entry, order), answer in zip(orders, answers, strict=True):
            if isinstance(answer, Put):
                continue
            if answer in ("lock-lost", "no-batch"):
                raise LockLost
            if answer in ("full-total", "full-per_submitter"):
                later.append((entry, order))
            else:
                self._refuse(entry, await self._error(answer, order))
        return later

    async def _error(self, refusal: Refusal, order: Order) -> MaitredError:
        return await refused(refusal, order, self._store, self._settings)

    def _refuse(self, entry: Entry, error: MaitredError) -> None:
        self._refused.append(f"{entry.name}, {entry.body['key']!r}: {error}")

    def _fault(self) -> str:
        if not self._refused:
            return ""
        named = "; ".join(self._refused[:MOST_NAMED])
        more = len(self._refused) - MOST_NAMED
        rest = f"; and {more} more" if more > 0 else ""
        return f"{len(self._refused)} of {self._count} jobs were refused: {named}{rest}"
