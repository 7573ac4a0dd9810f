"""Every verb in random order, on any settings: a real store does what the reference does."""

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis.stateful import (
    initialize,
    precondition,
    rule,
)

from maitred.core.job import Finish, Lease, Order
from maitred.core.output import Artifact, Saying
from maitred.core.settings import SECOND, Settings
from maitred.core.snapshot import without_wakes
from maitred.store.port import Store
from tests.conformance.machine import (
    NEEDS,
    PEOPLE,
    WORKERS,
    Both,
    artifacts,
    compare,
    ids,
    nonces,
    orders,
    parts,
    rules,
    steps,
)
from tests.conftest import SERVERS, Servers


class Comparison(Both):
    """Every verb, on any settings."""

    @initialize(rules=rules)
    def open(self, rules: Settings) -> None:
        self.configured(rules)

    @rule(order=orders)
    def put_one(self, order: Order) -> None:
        order = self.fitting(order)
        self.both(lambda store: store.put([order]))

    @rule(batch=st.lists(orders, min_size=2, max_size=6))
    def put_many(self, batch: list[Order]) -> None:
        batch = [self.fitting(order) for order in batch]
        self.both(lambda store: store.put(batch))

    @rule(worker=st.sampled_from(WORKERS), slots=st.integers(0, 3), serves=st.sets(st.sampled_from(NEEDS)))
    def join(self, worker: str, slots: int, serves: set[str]) -> None:
        self.both(lambda store: store.join(worker, slots, sorted(serves)))

    @rule(worker=st.sampled_from(WORKERS), slots=st.integers(1, 3), about=st.sampled_from([b"", b'{"a": 1}']))
    def join_for_all(self, worker: str, slots: int, about: bytes) -> None:
        self.both(lambda store: store.join(worker, slots, NEEDS, about))

    @rule(worker=st.sampled_from(WORKERS))
    def take(self, worker: str) -> None:
        self.both(lambda store: store.take(worker))

    @rule(worker=st.sampled_from(WORKERS), code=st.sampled_from(["", "error"]), data=st.data())
    def finish(self, worker: str, code: str, data: st.DataObject) -> None:
        results = [
            Finish(lease, code, code and "it broke", b"r", said=data.draw(parts))
            for lease in self.leases(worker, data)
        ]
        self.both(lambda store: store.finish(worker, results))

    @rule(worker=st.sampled_from(WORKERS), data=st.data())
    def hand_back(self, worker: str, data: st.DataObject) -> None:
        leases = self.leases(worker, data)
        self.both(lambda store: store.hand_back(worker, leases))

    @rule(worker=st.sampled_from(WORKERS), data=st.data())
    def renew(self, worker: str, data: st.DataObject) -> None:
        leases = self.leases(worker, data)
        self.both(lambda store: store.renew(worker, leases))

    @rule(worker=st.sampled_from(WORKERS), data=st.data())
    def say(self, worker: str, data: st.DataObject) -> None:
        leases = self.leases(worker, data)
        sayings = [
            Saying(lease, data.draw(parts), data.draw(st.integers(0, 4))) for lease in leases + leases[:1]
        ]
        self.both(lambda store: store.say(worker, sayings))

    @rule(worker=st.sampled_from(WORKERS), files=artifacts, data=st.data())
    def keep(self, worker: str, files: list[Artifact], data: st.DataObject) -> None:
        lease = next(iter(self.leases(worker, data)), Lease(12345, b"n" * 16))
        self.both(lambda store: store.keep(worker, lease, files))

    @rule(id=ids, typed=st.sampled_from([b"", b"ls\n"]), size=st.sampled_from([None, (80, 25)]))
    def type_in(self, id: str, typed: bytes, size: tuple[int, int] | None) -> None:
        record = self.reference._house.newest.get(id, 12345)
        self.both(lambda store: store.type_in(record, typed, size))

    @rule(id=ids, version=st.sampled_from([None, 1, 2]), after=st.integers(0, 5), limit=st.integers(1, 9))
    def listen(self, id: str, version: int | None, after: int, limit: int) -> None:
        async def heard(store: Store) -> Any:
            files = [await store.artifact(id, version, name) for name in ("a.txt", "b/é.png", "none")]
            return await store.output(id, version, after, limit), files

        self.both(heard)

    @rule(worker=st.sampled_from(WORKERS))
    def leave(self, worker: str) -> None:
        self.both(lambda store: store.leave(worker))

    @rule(worker=st.sampled_from(WORKERS))
    def empty_inbox(self, worker: str) -> None:
        if without_wakes(self.reference._house.inboxes.get(worker, [])):
            self.both(lambda store: self.parked(store, worker))

    @rule(id=ids, which=nonces)
    def release(self, id: str, which: str) -> None:
        nonce = self.nonce(id, which)
        self.both(lambda store: store.release(id, nonce))

    @rule(id=ids, which=nonces)
    def delay(self, id: str, which: str) -> None:
        nonce = self.nonce(id, which)
        self.both(lambda store: store.delay(id, nonce))

    @rule(id=ids)
    def remove(self, id: str) -> None:
        self.both(lambda store: store.remove(id))

    @rule(id=ids)
    def cancel(self, id: str) -> None:
        self.both(lambda store: store.cancel(id, "cancelled by u: no"))

    @rule(id=ids, seconds=st.sampled_from([1, 2, 3, 8, 10, 29, 99]))
    def shorten(self, id: str, seconds: int) -> None:
        self.both(lambda store: store.shorten(id, seconds * SECOND))

    @rule(order=orders, number=st.integers(0, 3))
    def admit(self, order: Order, number: int) -> None:
        order = order._replace(id=f"i{number}")
        self.both(lambda store: store.admit(order))

    @rule(worker=st.sampled_from(WORKERS), data=st.data())
    def confirm_stops(self, worker: str, data: st.DataObject) -> None:
        stopping = [hold for hold in self.holds(worker) if hold.stopping]
        chosen = data.draw(st.lists(st.sampled_from(stopping), unique_by=id)) if stopping else []
        results = [Finish(Lease(hold.record, hold.token), hold.stopping) for hold in chosen]
        self.both(lambda store: store.finish(worker, results))

    @rule(reason=st.sampled_from(["", "lunch", 'é"\x00\n']))
    def pause(self, reason: str) -> None:
        self.both(lambda store: store.pause("u", reason))

    @rule()
    @precondition(lambda self: self.reference._house.paused is not None)
    def resume(self) -> None:
        self.both(lambda store: store.resume())

    @rule(rules=rules)
    def configure(self, rules: Settings) -> None:
        self.both(lambda store: store.configure(rules))

    @rule(step=steps)
    def pass_time(self, step: int) -> None:
        self.now = max(1, self.now + step)

    @rule(step=steps)
    def tick(self, step: int) -> None:
        self.now = max(1, self.now + step)
        self.both(self.tick_and_compare)

    @rule(limit=st.integers(1, 3))
    def sweep(self, limit: int) -> None:
        self.both(lambda store: store.sweep(limit))

    @rule(id=ids, version=st.sampled_from([None, 1, 2]))
    def read(self, id: str, version: int | None) -> None:
        self.both(lambda store: store.read([id], version))

    @rule(limit=st.integers(1, 4))
    def look(self, limit: int) -> None:
        async def everything(store: Store) -> Any:
            pages, cursor = [], None
            while True:
                page = await store.line(cursor, limit)
                pages += list(page.views)
                cursor = page.next
                if cursor is None:
                    break
            return (
                pages,
                page.total,
                await store.running(),
                (await store.ended(0, limit)).views,
                [await store.submitter(person) for person in PEOPLE],
                await store.status(),
            )

        self.both(everything)


@pytest.mark.parametrize("kind", SERVERS)
def test_a_real_store_does_what_the_reference_does(servers: Servers, kind: str) -> None:
    compare(Comparison, servers, kind)
