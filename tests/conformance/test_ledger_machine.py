"""Stages, holds, space and batches in random order: a real store does what the reference does."""

from dataclasses import replace
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis.stateful import initialize, precondition, rule

from maitred.core.batch import BatchOrder
from maitred.core.classes import DurationClass, Limit
from maitred.core.job import Band, Finish, Held, HoldKind, Job, Lease, Order, Phase, TakenUp
from maitred.core.output import Artifact, Saying
from maitred.core.settings import SECOND, Settings
from maitred.core.snapshot import without_wakes
from maitred.store.port import Store
from tests.conformance.machine import PEOPLE, Both, artifacts, callbacks, compare, parts, times_to_abandon
from tests.conftest import SERVERS, Servers

STAGES = ("one", "provisioning", "three")
NEEDS = [f"stage:{stage}" for stage in STAGES]
WORKERS = ["w1", "w2"]
IDS = ["a", "b", "c", "é/:_\x00"]
BATCHES = ["bid0000000000", "bid0000000001", "no such"]
PROFILES = ["", "p", "é/:_"]
TOKENS = [b"t" * 16, b"u" * 16]

ids = st.sampled_from(IDS)
batches = st.sampled_from([*BATCHES[:2], *BATCHES])
jobs = st.builds(
    Order,
    id=ids,
    submitter=st.sampled_from([PEOPLE[0], *PEOPLE[:2]]),
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
    batch=st.sampled_from(["", *BATCHES[:2], *BATCHES]),
    profile=st.sampled_from(PROFILES),
    exempt=st.booleans(),
    only_new=st.booleans(),
    label=st.sampled_from([b"", b"label"]),
    token=st.sampled_from([b"", b"", b"", b"", *TOKENS]),
    ledger=st.sampled_from(["", "", "jid0000000000", "jid0000000002"]),
    status=st.sampled_from([0, 3, 6, 10]),
    callback=callbacks,
    abandon=times_to_abandon,
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
    ledger=st.sampled_from(["", "", "zookeeper://a/b"]),
    classes=st.sampled_from(
        [(), (), (DurationClass("c0", 3 * SECOND), DurationClass("c1", 10 * SECOND, Limit(1)))]
    ),
    elastic=st.sampled_from(["borrow", "squeeze"]),
)
told = st.builds(
    Job,
    record=st.just(0),
    id=ids,
    version=st.integers(1, 3),
    submitter=st.just(PEOPLE[0]),
    need=st.just(""),
    body=st.sampled_from([b"", b"tree"]),
    created_at=st.just(900 * SECOND),
    band=st.sampled_from([Band.SCHEDULED, Band.IMMEDIATE]),
    priority=st.sampled_from([2, 5]),
    phase=st.sampled_from([Phase.WAITING, Phase.WAITING, Phase.HELD, Phase.ENDED]),
    stage=st.integers(0, 3),
    attempt=st.integers(0, 1),
    retries=st.integers(0, 1),
    release=st.just(950 * SECOND),
    arrival=st.integers(1, 5),
    code=st.sampled_from(["", "error"]),
    message=st.sampled_from(["", "told"]),
    result=st.sampled_from([b"", b"1"]),
    batch=st.sampled_from(["", "bid0000000000"]),
    profile=st.sampled_from(PROFILES),
    space=st.sampled_from([0, 4, 11]),
    data=st.sampled_from([b"", b"handed on"]),
    identifiers=st.sampled_from([b"", b"{}"]),
    hold=st.sampled_from([None, None, Held("job", "", "bob", "why", 7)]),
    ledger=st.sampled_from(["jid0000000000", "jid0000000001"]),
    status=st.integers(1, 9),
    callback=callbacks,
    abandon=times_to_abandon,
)
steps = st.sampled_from([0, 1, SECOND, SECOND, 3 * SECOND, 6 * SECOND, 16 * SECOND, 600 * SECOND])
kinds = st.sampled_from(["batch", "submitter", "profile"])


class Ledger(Both):
    """What the Ledger adds, on a queue with or without stages."""

    arrivals = 0

    @initialize(rules=rules)
    def open(self, rules: Settings) -> None:
        """Begin with two batches and a worker, so that there is something to do from the first step on."""
        self.configured(rules)
        for external in ("x", ""):
            order = BatchOrder(external, PEOPLE[0], "", b"sent", expanding=not external, sealed=False)
            self.both(lambda store, order=order: store.create_batch(order))  # type: ignore[misc]
        self.both(lambda store: store.join("w1", 2, [*NEEDS, "handler:a"]))

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
    def finish(  # noqa: PLR0917 - hypothesis names them
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
            "said": data.draw(parts),
        }
        results = [Finish(lease, code, "said", b"data", **said) for lease in self.leases(worker, data)]
        self.both(lambda store: store.finish(worker, results))

    @rule(worker=st.sampled_from(WORKERS), files=artifacts, data=st.data())
    def say_and_keep(self, worker: str, files: list[Artifact], data: st.DataObject) -> None:
        leases = self.leases(worker, data)
        sayings = [Saying(lease, data.draw(parts), data.draw(st.integers(0, 4))) for lease in leases]
        self.both(lambda store: store.say(worker, sayings))
        lease = leases[0] if leases else Lease(12345, b"n" * 16)
        self.both(lambda store: store.keep(worker, lease, files))

    @rule(worker=st.sampled_from(WORKERS), space=st.sampled_from([None, 4, 9]), times=st.integers(1, 4))
    def finish_all(self, worker: str, space: int | None, times: int) -> None:
        """Let a worker end some stages of all that it has in hand."""
        for _ in range(times):
            leases = [Lease(hold.record, hold.token) for hold in self.holds(worker)]
            results = [Finish(lease, "", "", b"data", space=space) for lease in leases]
            self.both(lambda store, results=results: store.finish(worker, results))  # type: ignore[misc]

    @rule(many=st.lists(jobs, min_size=2, max_size=4), times=st.integers(0, 3))
    def submit_and_work(self, many: list[Order], times: int) -> None:
        """Most of what happens is that jobs come in and are worked on."""
        self.join_for_all("w1", 2)
        self.put_many([order._replace(delay=None, token=b"", expires_at=0) for order in many])
        self.finish_all("w1", 4, times)

    @rule(worker=st.sampled_from(WORKERS))
    def fail_all(self, worker: str) -> None:
        results = [Finish(Lease(hold.record, hold.token), "error", "no") for hold in self.holds(worker)]
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
    @precondition(lambda self: self.rolls % 3 == 0)
    def leave(self, worker: str) -> None:
        self.both(lambda store: store.leave(worker))

    @rule(worker=st.sampled_from(WORKERS))
    def empty_inbox(self, worker: str) -> None:
        if without_wakes(self.reference._house.inboxes.get(worker, [])):
            self.both(lambda store: self.parked(store, worker))

    @rule(jobs=st.lists(told, min_size=1, max_size=3))
    def restore(self, jobs: list[Job]) -> None:
        settings = self.reference._house.settings
        for job in jobs:
            job.stage = min(job.stage, len(settings.stages))
            job.need = settings.need(max(job.stage, 1)) if settings.staged else "handler:a"
            job.code = job.code if job.phase is Phase.ENDED else ""
            job.result = job.result if job.phase is Phase.ENDED else b""
            job.data = job.data if settings.staged else b""
            job.hold = job.hold and job.hold._replace(name=job.id)
            # No two jobs of a queue came at the same place: which goes first would be nobody's rule.
            self.arrivals += 1
            job.arrival = job.arrival * 1_000 + self.arrivals
        self.both(lambda store: store.restore(jobs))

    @rule(worker=st.sampled_from(WORKERS), status=st.integers(1, 9), data=st.data())
    def note_status(self, worker: str, status: int, data: st.DataObject) -> None:
        taken = [TakenUp(lease, status) for lease in self.leases(worker, data)]

        async def lost(store: Store) -> list[Lease]:
            return sorted(await store.note_status(worker, taken))

        self.both(lost)

    @rule(state=st.sampled_from(["failed", "completed", "held", "pending"]), status=st.integers(0, 9))
    def tell_the_tree(self, state: str, status: int) -> None:
        async def tell(store: Store) -> Any:
            unsaid = await store.unsaid(3)
            for view in unsaid.views:
                await store.said(view.job.record, state, status)
            await store.forgotten(unsaid.gone[:1])
            return unsaid

        self.both(tell)

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

    @rule()
    def unhold_all(self) -> None:
        for held in list(self.reference._house.holds.flags.values()):
            self.both(lambda store, held=held: store.unhold(held.kind, held.name))  # type: ignore[misc]

    @rule(id=batches)
    def seal_plainly(self, id: str) -> None:
        self.both(lambda store: store.seal_batch(id))

    def name(self, kind: HoldKind, number: int) -> str:
        if kind == "batch":
            # Where the ledger is a tree, a batch that is held is only a name.
            return "no such" if self.reference._house.settings.ledger else BATCHES[number]
        return str(PEOPLE[number % 2]) if kind == "submitter" else PROFILES[1 + number % 2]

    @rule(id=ids)
    def cancel(self, id: str) -> None:
        self.both(lambda store: store.cancel(id, "cancelled by u"))

    @rule(id=ids)
    @precondition(lambda self: self.rolls % 3 == 0)
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
    @precondition(lambda self: self.rolls % 5 == 0)
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
        self.now += step
        self.both(self.tick_and_compare)

    @rule(step=st.sampled_from([SECOND, 3 * SECOND, 6 * SECOND]))
    def tick_while_workers_live(self, step: int) -> None:
        self.now += step
        for worker in list(self.reference._house.floor.workers):
            held = [Lease(hold.record, hold.token) for hold in self.holds(worker)]
            self.both(lambda store, w=worker, held=held: store.renew(w, held))  # type: ignore[misc]

    @rule()
    def check(self) -> None:
        """Whatever has happened, there is nothing to find."""
        self.both(lambda store: store.check())

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
