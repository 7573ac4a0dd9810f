"""Stages, holds, space and batches in random order: a real store does what the reference does."""

from dataclasses import replace
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis.stateful import initialize, precondition, rule

from maitred.core.batch import BatchOrder
from maitred.core.classes import DurationClass, Limit
from maitred.core.job import Band, Finish, HoldKind, Order
from maitred.core.settings import SECOND, Settings
from maitred.core.snapshot import without_wakes
from maitred.store.port import Store
from tests.conformance.machine import PEOPLE, Both, compare, ids, steps
from tests.conftest import SERVERS, Servers

STAGES = ("one", "provisioning", "three")
NEEDS = [f"stage:{stage}" for stage in STAGES]
WORKERS = ["w1", "w2"]
BATCHES = ["bid0000000000", "bid0000000001", "bid0000000002", "no such"]
PROFILES = ["", "p", "é/:_"]
TOKENS = [b"t" * 16, b"u" * 16]

batches = st.sampled_from(BATCHES)
jobs = st.builds(
    Order,
    id=ids,
    submitter=st.sampled_from(PEOPLE[:2]),
    need=st.just(NEEDS[0]),
    body=st.sampled_from([b"", b"one"]),
    band=st.sampled_from([Band.SCHEDULED, Band.SCHEDULED, Band.BULK, Band.IMMEDIATE]),
    priority=st.sampled_from([2, 5, 5]),
    level=st.sampled_from([1, 1, 2]),
    elastic=st.booleans(),
    duration=st.just(0),
    delay=st.sampled_from([None, 0, 2 * SECOND]),
    policy_floor=st.just(False),
    expires_at=st.sampled_from([0, 0, 0, 1_020 * SECOND]),
    batch=st.sampled_from(["", "", *BATCHES]),
    profile=st.sampled_from(PROFILES),
    exempt=st.booleans(),
    only_new=st.booleans(),
    label=st.sampled_from([b"", b"label"]),
    token=st.sampled_from([b"", b"", *TOKENS]),
    ledger=st.sampled_from(["", "", "jid0000000000"]),
    status=st.sampled_from([0, 3]),
)
rules = st.builds(
    Settings,
    order=st.sampled_from(["newest-first", "oldest-first"]),
    eager=st.booleans(),
    per_recent=st.sampled_from([0, 60 * SECOND]),
    attempts=st.integers(1, 3),
    backoff=st.sampled_from([SECOND, 3 * SECOND]),
    most_backoff=st.just(5 * SECOND),
    retention=st.just(500 * SECOND),
    max_total=st.sampled_from([6, 100]),
    max_per_submitter=st.sampled_from([2, 100]),
    stages=st.sampled_from([STAGES, STAGES, STAGES, ("processing",), ("provisioning",)]),
    space=st.sampled_from([0, 10, 10]),
    classes=st.sampled_from(
        [(), (), (DurationClass("c0", 3 * SECOND), DurationClass("c1", 10 * SECOND, Limit(1)))]
    ),
    elastic=st.sampled_from(["borrow", "squeeze"]),
)
kinds = st.sampled_from(["batch", "submitter", "profile"])


class Ledger(Both):
    """What the Ledger adds, on a queue with or without stages."""

    @initialize(rules=rules)
    def open(self, rules: Settings) -> None:
        self.configured(rules)

    def suitable(self, order: Order) -> Order:
        """Let an order ask for what this queue has."""
        settings = self.reference._house.settings
        order = self.fitting(order)
        only_new = order.only_new and bool(order.batch)
        need = settings.need(1) if settings.staged else "handler:a"
        return order._replace(need=need, only_new=only_new, status=order.status if order.ledger else 0)

    @rule(order=jobs)
    def put_one(self, order: Order) -> None:
        order = self.suitable(order)
        self.both(lambda store: store.put([order]))

    @rule(many=st.lists(jobs, min_size=2, max_size=5))
    def put_many(self, many: list[Order]) -> None:
        many = [self.suitable(order) for order in many]
        self.both(lambda store: store.put(many))

    @rule(worker=st.sampled_from(WORKERS), slots=st.integers(1, 3), serves=st.sets(st.sampled_from(NEEDS)))
    def join(self, worker: str, slots: int, serves: set[str]) -> None:
        self.both(lambda store: store.join(worker, slots, sorted(serves | {"handler:a"})))

    @rule(worker=st.sampled_from(WORKERS), slots=st.integers(1, 3))
    def join_for_all(self, worker: str, slots: int) -> None:
        self.both(lambda store: store.join(worker, slots, [*NEEDS, "handler:a"]))

    @rule(
        worker=st.sampled_from(WORKERS),
        code=st.sampled_from(["", "", "", "error"]),
        transient=st.booleans(),
        priority=st.sampled_from([None, None, 2, 7]),
        space=st.sampled_from([None, 3, 8, 11]),
        identifiers=st.sampled_from([None, b'{"primary_id":"x"}']),
        data=st.data(),
    )
    def finish(
        self,
        worker: str,
        code: str,
        transient: bool,
        priority: int | None,
        space: int | None,
        identifiers: bytes | None,
        data: st.DataObject,
    ) -> None:
        said: dict[str, Any] = {
            "transient": transient,
            "priority": priority,
            "space": space,
            "identifiers": identifiers,
        }
        results = [Finish(lease, code, "said", b"data", **said) for lease in self.leases(worker, data)]
        self.both(lambda store: store.finish(worker, results))

    @rule(worker=st.sampled_from(WORKERS), data=st.data())
    def finish_plainly(self, worker: str, data: st.DataObject) -> None:
        results = [Finish(lease, "", "", b"data") for lease in self.leases(worker, data)]
        self.both(lambda store: store.finish(worker, results))

    @rule(worker=st.sampled_from(WORKERS), data=st.data())
    def hand_back(self, worker: str, data: st.DataObject) -> None:
        leases = self.leases(worker, data)
        self.both(lambda store: store.hand_back(worker, leases))

    @rule(worker=st.sampled_from(WORKERS), data=st.data())
    def renew(self, worker: str, data: st.DataObject) -> None:
        leases = self.leases(worker, data)
        self.both(lambda store: store.renew(worker, leases))

    @rule(worker=st.sampled_from(WORKERS))
    def leave(self, worker: str) -> None:
        self.both(lambda store: store.leave(worker))

    @rule(worker=st.sampled_from(WORKERS))
    def empty_inbox(self, worker: str) -> None:
        if without_wakes(self.reference._house.inboxes.get(worker, [])):
            self.both(lambda store: self.parked(store, worker))

    @rule(id=ids)
    def retry(self, id: str) -> None:
        self.both(lambda store: store.retry(id))

    @rule(id=ids, priority=st.sampled_from([0, 5, 9]))
    def prioritise(self, id: str, priority: int) -> None:
        self.both(lambda store: store.prioritise(id, priority))

    @rule(id=ids)
    def hold_job(self, id: str) -> None:
        self.both(lambda store: store.hold("job", id, "ann", 'é"\x00'))

    @rule(id=ids)
    def unhold_job(self, id: str) -> None:
        self.both(lambda store: store.unhold("job", id))

    @rule(kind=kinds, number=st.integers(0, 2))
    def hold_many(self, kind: HoldKind, number: int) -> None:
        name = self.name(kind, number)
        self.both(lambda store: store.hold(kind, name, "ann", ""))

    @rule(kind=kinds, number=st.integers(0, 2))
    def unhold_many(self, kind: HoldKind, number: int) -> None:
        name = self.name(kind, number)
        self.both(lambda store: store.unhold(kind, name))

    @staticmethod
    def name(kind: HoldKind, number: int) -> str:
        if kind == "batch":
            return BATCHES[number]
        return str(PEOPLE[number % 2]) if kind == "submitter" else PROFILES[1 + number % 2]

    @rule(id=ids)
    def cancel(self, id: str) -> None:
        self.both(lambda store: store.cancel(id, "cancelled by u"))

    @rule(id=ids)
    def remove(self, id: str) -> None:
        self.both(lambda store: store.remove(id))

    @rule(id=ids)
    def release(self, id: str) -> None:
        self.both(lambda store: store.release(id))

    @rule(
        external=st.sampled_from(["", "x", "y/:_"]),
        person=st.sampled_from(PEOPLE[:2]),
        expanding=st.booleans(),
        sealed=st.booleans(),
    )
    def create_batch(self, external: str, person: Any, expanding: bool, sealed: bool) -> None:
        order = BatchOrder(external, person, "p", b"sent\xff", expanding, sealed)
        self.both(lambda store: store.create_batch(order))

    @rule(id=batches, token=st.sampled_from([b"", *TOKENS]), fault=st.sampled_from(["", "", "line 3: bad"]))
    def seal_batch(self, id: str, token: bytes, fault: str) -> None:
        self.both(lambda store: store.seal_batch(id, token=token, fault=fault))

    @rule(owner=st.sampled_from(["s1", "s2"]), token=st.sampled_from(TOKENS))
    def lock_batch(self, owner: str, token: bytes) -> None:
        self.both(lambda store: store.lock_batch(owner, token))

    @rule(id=batches, token=st.sampled_from(TOKENS), keep=st.booleans())
    def keep_batch(self, id: str, token: bytes, keep: bool) -> None:
        self.both(lambda store: (store.keep_batch if keep else store.unlock_batch)(id, token))

    @rule(id=batches, token=st.sampled_from(TOKENS), told=st.lists(ids, max_size=3))
    def mark_rows(self, id: str, token: bytes, told: list[str]) -> None:
        self.both(lambda store: store.mark_rows(id, token, [(job, "failed") for job in told]))

    @rule(token=st.sampled_from(TOKENS), send=st.booleans())
    def report_what_is_locked(self, token: bytes, send: bool) -> None:
        """Most reports are made of a batch that wants one, by the owner of its lock."""
        self.both(lambda store: store.lock_batch("s1", token))
        ready = [b.id for b in self.reference._house.batches.all.values() if b.token == token and b.frozen]
        for id in ready or BATCHES[:1]:
            self.both(lambda store, id=id: store.report_batch(id, token, b"report", send=send))  # type: ignore[misc]

    @rule(id=batches, token=st.sampled_from(TOKENS), again=st.sampled_from([None, 5 * SECOND]))
    def sent_batch(self, id: str, token: bytes, again: int | None) -> None:
        self.both(lambda store: store.sent_batch(id, token, again))

    @rule(id=batches)
    def update_batch(self, id: str) -> None:
        self.both(lambda store: store.update_batch(id))

    @rule(id=batches)
    def remove_batch(self, id: str) -> None:
        self.both(lambda store: store.remove_batch(id))

    @rule()
    def pause(self) -> None:
        self.both(lambda store: store.pause("u", ""))

    @rule()
    @precondition(lambda self: self.reference._house.paused is not None)
    def resume(self) -> None:
        self.both(lambda store: store.resume())

    @rule(space=st.sampled_from([0, 2, 10]), staged=st.booleans())
    def configure(self, space: int, staged: bool) -> None:
        settings = self.reference._house.settings
        stages = STAGES if staged else settings.stages
        self.both(lambda store: store.configure(replace(settings, space=space, stages=stages)))

    @rule(step=steps)
    def tick(self, step: int) -> None:
        self.now = max(1, self.now + step)
        self.both(self.tick_and_compare)

    @rule(id=batches, limit=st.integers(1, 4))
    def look(self, id: str, limit: int) -> None:
        async def everything(store: Store) -> Any:
            rows, after = [], 0
            try:
                while True:
                    page = await store.batch_rows(id, after, limit)
                    rows += page.rows
                    if page.next is None:
                        break
                    after = page.next
            finally:
                shown = (
                    await store.batch(id),
                    (await store.batches(limit=limit)).batches,
                    (await store.batches(state="failed")).batches,
                    (await store.batches(external_id="x")).batches,
                    await store.held(0, limit),
                    await store.ended(0, limit),
                    await store.read(["a", "b", "c"]),
                    await store.running(),
                    await store.status(),
                )
            return rows, shown

        self.both(everything)


@pytest.mark.parametrize("kind", SERVERS)
def test_a_real_store_keeps_the_ledger_as_the_reference_does(servers: Servers, kind: str) -> None:
    compare(Ledger, servers, kind)
