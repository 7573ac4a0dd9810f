"""Random operations on a floor where somebody has to give way all the time."""

from dataclasses import replace
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis.stateful import (
    initialize,
    rule,
)

from maitred.core.classes import Limit
from maitred.core.floor import Hold
from maitred.core.job import Band, Finish, Lease, Order, Submitter
from maitred.core.settings import SECOND, Settings
from maitred.core.snapshot import without_wakes
from maitred.store.port import Store
from tests.conformance.machine import NEEDS, PEOPLE, WORKERS, Both, compare, tables
from tests.conftest import SERVERS, Servers


class BusyFloor(Both):
    """A floor on which somebody has to give way all the time: full levels, elastics, sessions, stops."""

    @initialize(
        table=tables.filter(lambda table: len(table) > 1),
        policy=st.sampled_from(["borrow", "squeeze"]),
        eager=st.booleans(),
        slots=st.integers(1, 4),
    )
    def open(self, table: Any, policy: Any, eager: bool, slots: int) -> None:
        rules = Settings(
            classes=table, elastic=policy, eager=eager, interactive_per_submitter=3, lease=60 * SECOND
        )
        self.opened = rules
        self.configured(rules)
        self.both(lambda store: store.join("w1", slots, NEEDS))
        self.jobs = 0
        self.past: list[Lease] = []

    def order(self, id: str, who: Submitter, level: int, need: str, **more: Any) -> Order:
        return self.fitting(Order(id, who, need, b"", level=level, elastic=level == 0, delay=0, **more))

    @rule(
        levels=st.lists(st.sampled_from([0, 0, 0, 1, 2, 3, 5]), min_size=1, max_size=4),
        who=st.sampled_from(PEOPLE),
        need=st.sampled_from([NEEDS[0], NEEDS[0], NEEDS[2]]),
        band=st.sampled_from([Band.SCHEDULED, Band.SCHEDULED, Band.IMMEDIATE, Band.BULK]),
    )
    def put(self, levels: list[int], who: Submitter, need: str, band: Band) -> None:
        self.jobs += len(levels)
        batch = [
            self.order(f"j{self.jobs + at}", who, level, need, band=band) for at, level in enumerate(levels)
        ]
        self.both(lambda store: store.put(batch))

    @rule(level=st.sampled_from([0, 1, 2]), data=st.data())
    def put_again(self, level: int, data: st.DataObject) -> None:
        house = self.reference._house
        if house.newest:
            id = data.draw(st.sampled_from(sorted(house.newest)))
            job = house.jobs[house.newest[id]]
            order = self.order(id, job.submitter, level, job.need)
            self.both(lambda store: store.put([order]))

    @rule(person=st.sampled_from(PEOPLE), need=st.sampled_from(NEEDS), again=st.booleans())
    def admit(self, person: Submitter, need: str, again: bool) -> None:
        self.jobs += 1
        id = "i" if again else f"i{self.jobs}"
        self.both(lambda store: store.admit(Order(id, person, need, b"")))

    @rule(step=st.sampled_from([0, SECOND, 2 * SECOND, 3 * SECOND, 8 * SECOND]))
    def tick(self, step: int) -> None:
        self.now += step
        self.both(self.tick_and_compare)

    def some_hold(self, worker: str, data: st.DataObject, *, stopping: bool | None = None) -> list[Hold]:
        self.past = [*self.past[-20:], *(Lease(h.record, h.token) for h in self.holds(worker))]
        holds = [h for h in self.holds(worker) if stopping is None or bool(h.stopping) == stopping]
        return [data.draw(st.sampled_from(holds))] if holds else []

    @rule(worker=st.sampled_from(WORKERS[:2]), data=st.data())
    def finish(self, worker: str, data: st.DataObject) -> None:
        results = [Finish(Lease(h.record, h.token)) for h in self.some_hold(worker, data)]
        self.both(lambda store: store.finish(worker, results))

    @rule(worker=st.sampled_from(WORKERS[:2]), data=st.data())
    def confirm(self, worker: str, data: st.DataObject) -> None:
        results = [
            Finish(Lease(h.record, h.token), h.stopping) for h in self.some_hold(worker, data, stopping=True)
        ]
        self.both(lambda store: store.finish(worker, results))

    @rule(worker=st.sampled_from(WORKERS[:2]), data=st.data())
    def answer_late(self, worker: str, data: st.DataObject) -> None:
        """A worker says again, or long after it lost the lease, how a run ended."""
        if self.past:
            lease = data.draw(st.sampled_from(self.past))
            self.both(lambda store: store.finish(worker, [Finish(lease)]))

    @rule()
    def lose_the_workers(self) -> None:
        """Nobody renews, and one comes back."""
        self.now += 61 * SECOND
        self.both(self.tick_and_compare)
        self.both(lambda store: store.join("w1", 2, NEEDS))

    @rule(worker=st.sampled_from(WORKERS[:2]), data=st.data())
    def hand_back(self, worker: str, data: st.DataObject) -> None:
        leases = [Lease(h.record, h.token) for h in self.some_hold(worker, data)]
        self.both(lambda store: store.hand_back(worker, leases))

    @rule(worker=st.sampled_from(WORKERS[:2]), data=st.data())
    def renew(self, worker: str, data: st.DataObject) -> None:
        forgotten = self.some_hold(worker, data) if data.draw(st.booleans()) else []
        leases = [Lease(h.record, h.token) for h in self.holds(worker) if h not in forgotten]
        self.both(lambda store: store.renew(worker, leases))

    @rule(
        worker=st.sampled_from(WORKERS[:2]),
        serves=st.sampled_from([NEEDS, NEEDS, NEEDS[:1]]),
        slots=st.integers(0, 4),
    )
    def join(self, worker: str, serves: list[str], slots: int) -> None:
        self.both(lambda store: store.join(worker, slots, serves))

    @rule(worker=st.sampled_from(WORKERS[:2]))
    def leave_and_come_back(self, worker: str) -> None:
        self.both(lambda store: store.leave(worker))
        self.both(lambda store: store.join("w1", 2, NEEDS))

    @rule(data=st.data(), verb=st.sampled_from(["cancel", "remove", "shorten", "release"]))
    def change(self, data: st.DataObject, verb: str) -> None:
        known = sorted(self.reference._house.newest)
        if not known:
            return
        id = data.draw(st.sampled_from(known))
        seconds = data.draw(st.sampled_from([1, 3, 9]))
        more = {"cancel": ("no",), "shorten": (seconds * SECOND,)}.get(verb, ())
        self.both(lambda store: getattr(store, verb)(id, *more))

    @rule(limit=st.integers(1, 4))
    def new_limits(self, limit: int) -> None:
        table = tuple(each._replace(limit=each.limit and Limit(limit)) for each in self.opened.classes)
        self.both(lambda store: store.configure(replace(self.opened, classes=table)))

    @rule(worker=st.sampled_from(WORKERS[:2]))
    def empty_inbox(self, worker: str) -> None:
        if without_wakes(self.reference._house.inboxes.get(worker, [])):
            self.both(lambda store: self.parked(store, worker))

    @rule()
    def look(self) -> None:
        self.both(self.shown)

    @staticmethod
    async def shown(store: Store) -> Any:
        return await store.status(), await store.running(), (await store.line(None, 99)).views


@pytest.mark.parametrize("kind", SERVERS)
def test_a_real_store_does_on_a_busy_floor_what_the_reference_does(servers: Servers, kind: str) -> None:
    compare(BusyFloor, servers, kind)
