"""Operations are done on the reference and on a real store; after each both have the same state, whole."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import Any
from uuid import uuid4

import hypothesis.strategies as st
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    rule,
    run_state_machine_as_test,
)

from maitred.core.classes import PERCENT, DurationClass, Limit
from maitred.core.classes import limits as limits_of
from maitred.core.floor import Hold, Kind
from maitred.core.invariants import violations
from maitred.core.job import Band, Lease, Order, Place, Submitter
from maitred.core.notices import Delivery
from maitred.core.output import Artifact, Part
from maitred.core.settings import SECOND, Settings
from maitred.core.snapshot import Snapshot
from maitred.errors import MaitredError
from maitred.store.memory import MemoryStore
from maitred.store.port import Store
from maitred.store.valkey.store import ValkeyStore
from tests.conftest import Servers, connect

IDS = ["a", "b", "c", "d", "e/..%2F", "f\x00.{}'é", "g" * 300, "user.1", "1"]
PEOPLE = [
    Submitter("user", "1"),
    Submitter("team", "1"),
    Submitter("user", "1.2/x"),
    Submitter("user", "é\x00\n"),
]
NEEDS = ["handler:a", "handler:a.user", "command"]
WORKERS = ["w1", "w2", "W3", "é4"]
LOCKS = [b"l" * 16, b"m" * 16]

ids = st.sampled_from(IDS)
nonces = st.sampled_from(["any", "right", "wrong"])
delays = st.sampled_from([None, 0, 1, 2 * SECOND, 60 * SECOND])
callbacks = st.booleans()
times_to_abandon = st.sampled_from([0, 0, 0, 1, 7 * SECOND, 90 * SECOND + 1])
orders = st.builds(
    Order,
    id=ids,
    submitter=st.sampled_from(PEOPLE),
    need=st.sampled_from(NEEDS),
    body=st.sampled_from([b"", b"one", b"two\x00\xff"]),
    band=st.sampled_from([Band.SCHEDULED, Band.SCHEDULED, Band.BULK, Band.IMMEDIATE]),
    priority=st.sampled_from([0, 5, 5, 5, 99]),
    level=st.sampled_from([1, 1, 2, 3, 3]),
    elastic=st.booleans(),
    duration=st.sampled_from([0, 0, 1]),
    delay=delays,
    policy_floor=st.booleans(),
    expires_at=st.sampled_from([0, 0, 0, 1_005 * SECOND, 1_100 * SECOND]),
    batch=st.just(""),
    profile=st.just(""),
    exempt=st.sampled_from([False, False, True]),
    only_new=st.just(False),
    label=st.just(b""),
    token=st.just(b""),
    ledger=st.just(""),
    status=st.just(0),
    callback=callbacks,
    abandon=times_to_abandon,
)
steps = st.sampled_from(
    [0, 1, SECOND, 2 * SECOND, 4 * SECOND, 10 * SECOND, 16 * SECOND, 61 * SECOND, -5 * SECOND, 1_000 * SECOND]
)
limits = st.one_of(
    st.integers(1, 4).map(Limit), st.sampled_from([20, 50, 100]).map(lambda p: Limit(p * PERCENT, True))
)
tables = st.lists(limits, max_size=4).map(
    lambda found: tuple(
        DurationClass(f"c{at}", (3, 10, 30, 40, 50)[at] * SECOND, limit)
        for at, limit in enumerate([None, *found] if found else [])
    )
)
rules = st.builds(
    Settings,
    order=st.sampled_from(["newest-first", "oldest-first"]),
    eager=st.booleans(),
    per_recent=st.sampled_from([0, 0, 60 * SECOND]),
    window=st.just(120 * SECOND),
    attempts=st.integers(1, 3),
    retention=st.just(500 * SECOND),
    max_total=st.sampled_from([4, 100]),
    max_per_submitter=st.sampled_from([2, 100]),
    classes=tables,
    elastic=st.sampled_from(["borrow", "borrow", "squeeze"]),
    interactive_per_submitter=st.sampled_from([1, 5]),
    output_limit=st.sampled_from([0, 100, 500]),
    artifact_limit=st.sampled_from([5, 100]),
)
parts = st.lists(
    st.builds(
        Part,
        stream=st.sampled_from(["stdout", "stdout", "stderr", "progress"]),
        data=st.sampled_from([b"", b"one\n", b"\x00\xff" * 7, b"x" * 60]),
        cut=st.sampled_from([0, 0, 10 << 30]),
    ),
    max_size=4,
).map(tuple)
artifacts = st.lists(
    st.builds(
        Artifact,
        name=st.sampled_from(["a.txt", "b/é.png", ""]),
        media_type=st.sampled_from(["text/plain", ""]),
        data=st.sampled_from([b"", b"1234", b"\x00\xff"]),
    ),
    max_size=3,
)


def differences(real: Any, wanted: Any) -> list[str]:
    """Say in which parts two snapshots, or jobs in them, differ."""
    found = []
    for name in real.__dataclass_fields__:
        one, other = getattr(real, name), getattr(wanted, name)
        if one == other:
            continue
        if name == "jobs" and one.keys() == other.keys():
            found += [f"{one[r].id!r}: {differences(one[r], other[r])}" for r in one if one[r] != other[r]]
        else:
            found.append(f"{name}: {one} != {other}")
    return found


def overtaken(state: Snapshot, rules: Settings, since: int) -> list[str]:
    """Name who still waits though it would fit into what a later place was given since, and what yields."""
    free = [
        limit - used for limit, used in zip(limits_of(rules.levels, state.slots), state.used, strict=True)
    ]
    # Where a stop is under way, it may be the one that the earlier place waits for.
    yielding = rules.elastic == "squeeze" and not state.credit
    listed = [level for level, records in state.giving_way.items() for _ in records if yielding]
    free = [units + sum(level >= k for level in listed) for k, units in enumerate(free, 1)]
    found = []
    for worker in state.workers.values():
        for hold in worker.holds:
            job = state.jobs.get(hold.record)
            if hold.number <= since or not job or hold.kind is Kind.INTERACTIVE:
                continue
            level = job.level if hold.kind is Kind.ELASTIC else hold.level
            taken = Place(job.lane, job.release, job.arrival, job.submitter, 0).rank(state.now)
            found += [
                f"{place} waits, {job.id!r} started"
                for place in state.places
                if place.due(state.now)
                and place.rank(state.now) < taken
                and place.lane.need in worker.serves
                and all(free[k - 1] + (k <= level) > 0 for k in range(2, place.lane.level + 1))
            ]
    return found


class Both(RuleBasedStateMachine):
    """Does each operation twice and compares."""

    servers: Servers
    kind: str

    def __init__(self) -> None:
        super().__init__()
        self.now = 1_000 * SECOND
        self.rolls = 0
        self.used: list[int] = []
        self.seq = 0
        self.runner = asyncio.Runner()
        self.queue = f"m{uuid4().hex}"

    def configured(self, rules: Settings) -> None:
        self.reference = MemoryStore(self.queue, clock=lambda: self.now, dice=self.dice)
        self.stores = connect(self.servers, self.kind, None)
        real = self.stores.queue(self.queue)
        assert isinstance(real, ValkeyStore)
        self.real = real
        self.real._clock, self.real._dice = (lambda: self.now), self.dice
        self.both(lambda store: store.configure(rules))

    def dice(self) -> bytes:
        return sha256(self.rolls.to_bytes(8, "big")).digest()[:16]

    def both(self, verb: Callable[[Store], Awaitable[Any]]) -> None:
        """Do the verb on both, compare answers and states, and check the invariants."""
        self.rolls += 1
        wanted = self.runner.run(self.answer(verb, self.reference))
        got = self.runner.run(self.answer(verb, self.real))
        assert got == wanted
        state = self.runner.run(self.real.snapshot())
        different = differences(state, self.runner.run(self.reference.snapshot()))
        assert not different, "\n".join(different)
        house = self.reference._house
        assert violations(state, house.settings) == []
        used, limits = house.floor.used, house.floor.limits
        grown = [k for k, (now, before) in enumerate(zip(used, self.used, strict=False)) if now > before]
        assert [k for k in grown if k and used[k] > limits[k]] == [], "a level grew over its limit"
        self.used = used
        if not house.settings.staged:
            # A worker carries a job on through its stages, whoever waits.
            assert overtaken(state, house.settings, self.seq) == []
        self.seq = state.seq

    def fitting(self, order: Order) -> Order:
        """Give the order a class and a duration that the queue has."""
        levels = self.reference._house.settings.levels
        level = 1 if order.elastic else min(order.level, len(levels))
        asked = order.duration and not order.elastic
        return order._replace(level=level, duration=levels[level - 1].cap - SECOND // 2 if asked else 0)

    @staticmethod
    async def answer(verb: Callable[[Store], Awaitable[Any]], store: Store) -> Any:
        try:
            answer = await verb(store)
        except MaitredError as error:
            return type(error), str(error)
        if hasattr(answer, "lost"):
            return sorted(answer.lost), answer.starts, answer.known
        return answer

    @rule(chosen=st.lists(st.integers(0, 9), max_size=3))
    def attend(self, chosen: list[int]) -> None:
        known = [*self.reference._house.newest, "unknown"]
        watched = [known[each % len(known)] for each in chosen]
        self.both(lambda store: store.attend(watched))

    @rule(token=st.sampled_from(LOCKS), limit=st.integers(1, 4))
    def lock_notices(self, token: bytes, limit: int) -> None:
        self.both(lambda store: store.lock_notices("é1", token, limit))

    @rule(
        token=st.sampled_from([b"", *LOCKS, LOCKS[0]]),
        which=st.integers(0, 9),
        wrong=st.sampled_from([0, 0, 0, 1]),
        again=st.sampled_from([0, 0, 1, 5 * SECOND]),
        said=st.sampled_from(["200 OK", "é\udcff" * 300]),
    )
    def told_notice(self, token: bytes, which: int, wrong: int, again: int, said: str) -> None:
        """Tell the first notice of a job, under the right lock or under another."""
        pending = list(self.reference._house.outbox.pending.values())
        if not pending:
            return
        record, notice = pending[which % len(pending)][0]
        number, at = notice.number + wrong, self.now
        delivery = Delivery(
            number, notice.kind, at, notice.tries, "again" if again else "sent", said, 3, again and at + again
        )
        self.both(lambda store: store.told_notice(record, number, token, delivery))

    @rule(version=st.sampled_from([None, 1, 2]))
    def deliveries(self, version: int | None) -> None:
        ids = [*self.reference._house.newest, "unknown"]

        async def all_of_them(store: Store) -> Any:
            return [await store.deliveries(id, version) for id in ids]

        self.both(all_of_them)

    def holds(self, worker: str) -> list[Hold]:
        known = self.reference._house.floor.workers.get(worker)
        return list(known.holds.values()) if known else []

    def leases(self, worker: str, data: st.DataObject) -> list[Lease]:
        leases = [Lease(hold.record, hold.token) for hold in self.holds(worker)]
        chosen = data.draw(st.lists(st.sampled_from(leases), unique=True)) if leases else []
        if data.draw(st.integers(0, 9)) == 0:
            chosen.append(Lease(12345, b"n" * 16))
        return chosen

    def nonce(self, id: str, which: str) -> int | None:
        if which == "any":
            return None
        view = self.runner.run(self.reference.read([id]))[0]
        return 77 if which == "wrong" or not view or view.nonce is None else view.nonce

    @staticmethod
    async def parked(store: Store, worker: str) -> list[Any]:
        return [message for message in await store.park(worker, 1) if type(message).__name__ != "Wake"]

    async def tick_and_compare(self, store: Store) -> None:
        """The store may look again too early, never too late."""
        _, next_at, idle_until = await store.tick()
        house = self.reference._house
        for moment, exact in ((next_at, house.next_at()), (idle_until, house.idle_until())):
            assert exact is None or (moment is not None and moment <= exact)

    def teardown(self) -> None:
        if hasattr(self, "stores"):
            self.runner.run(self.stores.close())
        self.runner.close()


def compare(operations: type[Both], servers: Servers, kind: str) -> None:
    """Let random operations run on the reference and on a server of this kind."""
    machine = type("Machine", (operations,), {"servers": servers, "kind": kind})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=int(os.environ.get("MAITRED_EXAMPLES", "60")),
            stateful_step_count=60,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            print_blob=True,
            phases=[Phase.explicit, Phase.reuse, Phase.generate],
        ),
    )
