"""Random operations on the reference and on a real store; after every step their whole state is the same."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from maitred.core.floor import Hold
from maitred.core.invariants import violations
from maitred.core.job import Band, Finish, Lease, Order, Submitter
from maitred.core.settings import SECOND, Settings
from maitred.errors import MaitredError
from maitred.store.memory import MemoryStore
from maitred.store.port import Store
from maitred.store.valkey.store import ValkeyStore
from tests.conftest import SERVERS, Servers, connect

IDS = ["a", "b", "c", "d", "e/..%2F", "f\x00.{}'é", "g" * 300, "user.1", "1"]
PEOPLE = [
    Submitter("user", "1"),
    Submitter("team", "1"),
    Submitter("user", "1.2/x"),
    Submitter("user", "é\x00\n"),
]
NEEDS = ["handler:a", "handler:a.user", "command"]
WORKERS = ["w1", "w2", "W3", "é4"]

ids = st.sampled_from(IDS)
nonces = st.sampled_from(["any", "right", "wrong"])
delays = st.sampled_from([None, 0, 1, 2 * SECOND, 60 * SECOND])
orders = st.builds(
    Order,
    id=ids,
    submitter=st.sampled_from(PEOPLE),
    need=st.sampled_from(NEEDS),
    body=st.sampled_from([b"", b"one", b"two\x00\xff"]),
    band=st.sampled_from([Band.SCHEDULED, Band.SCHEDULED, Band.BULK, Band.IMMEDIATE]),
    priority=st.sampled_from([0, 5, 5, 5, 99]),
    level=st.just(1),
    elastic=st.booleans(),
    delay=delays,
    policy_floor=st.booleans(),
    expires_at=st.sampled_from([0, 0, 0, 1_005 * SECOND, 1_100 * SECOND]),
)
steps = st.sampled_from(
    [0, 1, SECOND, 2 * SECOND, 10 * SECOND, 16 * SECOND, 61 * SECOND, -5 * SECOND, 1_000 * SECOND]
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


class Comparison(RuleBasedStateMachine):
    """Does each operation twice and compares."""

    servers: Servers
    kind: str

    def __init__(self) -> None:
        super().__init__()
        self.now = 1_000 * SECOND
        self.rolls = 0
        self.runner = asyncio.Runner()
        self.queue = f"m{uuid4().hex}"

    @initialize(rules=rules)
    def open(self, rules: Settings) -> None:
        self.reference = MemoryStore(self.queue, clock=lambda: self.now, dice=self.dice)
        self.stores = connect(self.servers, self.kind, None)
        real = self.stores.queue(self.queue)
        assert isinstance(real, ValkeyStore)
        self.real = real
        self.real._clock, self.real._dice = (lambda: self.now), self.dice
        self.both(lambda store: store.configure(rules))

    def dice(self) -> bytes:
        return self.rolls.to_bytes(16, "big")

    def both(self, verb: Callable[[Store], Awaitable[Any]]) -> None:
        """Do the verb on both, compare answers and states, and check the invariants."""
        self.rolls += 1
        wanted = self.runner.run(self.answer(verb, self.reference))
        got = self.runner.run(self.answer(verb, self.real))
        assert got == wanted
        state = self.runner.run(self.real.snapshot())
        different = differences(state, self.runner.run(self.reference.snapshot()))
        assert not different, "\n".join(different)
        assert violations(state) == []

    @staticmethod
    async def answer(verb: Callable[[Store], Awaitable[Any]], store: Store) -> Any:
        try:
            answer = await verb(store)
        except MaitredError as error:
            return type(error), str(error)
        if hasattr(answer, "lost"):
            return sorted(answer.lost), answer.starts, answer.known
        return answer

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

    @rule(order=orders)
    def put_one(self, order: Order) -> None:
        self.both(lambda store: store.put([order]))

    @rule(batch=st.lists(orders, min_size=2, max_size=6))
    def put_many(self, batch: list[Order]) -> None:
        self.both(lambda store: store.put(batch))

    @rule(worker=st.sampled_from(WORKERS), slots=st.integers(0, 3), serves=st.sets(st.sampled_from(NEEDS)))
    def join(self, worker: str, slots: int, serves: set[str]) -> None:
        self.both(lambda store: store.join(worker, slots, sorted(serves)))

    @rule(worker=st.sampled_from(WORKERS), slots=st.integers(1, 3))
    def join_for_all(self, worker: str, slots: int) -> None:
        self.both(lambda store: store.join(worker, slots, NEEDS))

    @rule(worker=st.sampled_from(WORKERS))
    def take(self, worker: str) -> None:
        self.both(lambda store: store.take(worker))

    @rule(worker=st.sampled_from(WORKERS), code=st.sampled_from(["", "error"]), data=st.data())
    def finish(self, worker: str, code: str, data: st.DataObject) -> None:
        results = [Finish(lease, code, code and "it broke", b"r") for lease in self.leases(worker, data)]
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
        if self.reference._house.inboxes.get(worker):
            self.both(lambda store: self.parked(store, worker))

    @staticmethod
    async def parked(store: Store, worker: str) -> list[Any]:
        return [message for message in await store.park(worker, 1) if type(message).__name__ != "Wake"]

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

    async def tick_and_compare(self, store: Store) -> None:
        """The store may look again too early, never too late."""
        next_at = (await store.tick()).next_at
        exact = self.reference._house.next_at()
        assert exact is None or (next_at is not None and next_at <= exact)

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

    def teardown(self) -> None:
        if hasattr(self, "stores"):
            self.runner.run(self.stores.close())
        self.runner.close()


@pytest.mark.parametrize("kind", SERVERS)
def test_a_real_store_does_what_the_reference_does(servers: Servers, kind: str) -> None:
    machine = type("Machine", (Comparison,), {"servers": servers, "kind": kind})
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
