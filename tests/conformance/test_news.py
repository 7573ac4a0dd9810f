"""Listening servers: what they are told keeps the picture that they once took the same as the store's."""

import asyncio
import random

import pytest

from maitred.core.classes import DurationClass, Limit
from maitred.core.events import (
    Added,
    Ended,
    Entry,
    Freed,
    Lowered,
    Removed,
    Returned,
    Started,
    Stopping,
    Taken,
    Versioned,
)
from maitred.core.floor import Kind
from maitred.core.job import Band, Finish, Order, Submitter
from maitred.core.settings import SECOND, Settings
from maitred.store.port import Store, Survey
from tests.conftest import Clock

NEED = "handler:render"
CLASSES = (
    DurationClass("fast", 3 * SECOND),
    DurationClass("medium", 10 * SECOND, Limit(2)),
    DurationClass("slow", 30 * SECOND, Limit(1)),
)


class Picture:
    """Lanes and runs as a server keeps them, from one look and what it is told since."""

    def __init__(self, survey: Survey, lanes: dict[str, list[bytes]]) -> None:
        self.lanes = {lane: sorted(orders) for lane, orders in lanes.items()}
        self.runs = {record: (run.level, run.granted, run.kind) for record, run in survey.runs.items()}
        self.last_id, self.number = survey.last_id, survey.last_number

    def follow(self, entries: list[Entry]) -> None:
        for entry in entries:
            assert entry.number == self.number + 1, "an entry is missing"
            self.last_id, self.number = entry.id, entry.number
            for event in entry.events:
                self._apply(event)

    def _apply(self, event: object) -> None:
        if isinstance(event, Added):
            lane = self.lanes.setdefault(event.lane, [])
            lane[:] = sorted({*lane, event.order})
        elif isinstance(event, Removed):
            self.lanes[event.lane] = [order for order in self.lanes[event.lane] if order != event.order]
        elif isinstance(event, Taken):
            self.lanes[event.lane] = [order for order in self.lanes[event.lane] if order > event.through]
        elif isinstance(event, Started):
            self.runs[event.record] = (event.level, event.duration, event.kind)
        elif isinstance(event, Freed):
            self.runs.pop(event.record, None)
        elif isinstance(event, Lowered):
            self.runs[event.record] = (event.level, event.duration, self.runs[event.record][2])


async def take_picture(store: Store) -> Picture:
    survey = await store.survey(600)
    lanes = {}
    for lane in survey.lanes:
        orders: list[bytes] = []
        while page := await store.places(lane, orders[-1] if orders else b"", 3):
            orders += page
        lanes[lane] = orders
    return Picture(survey, lanes)


@pytest.mark.parametrize("policy", ["borrow", "squeeze"])
@pytest.mark.parametrize("seed", range(4))
async def test_the_picture_that_is_followed_is_the_one_that_is_looked_at(
    store: Store, clock: Clock, policy: str, seed: int
) -> None:
    dice = random.Random(seed)
    await store.configure(Settings(classes=CLASSES, elastic=policy, lease=10**12))  # type: ignore[arg-type]
    picture = await take_picture(store)
    held = []
    for number in range(80):
        clock.now += dice.choice([0, 0, SECOND, 4 * SECOND])
        match dice.randrange(8):
            case 0 | 1 | 2:
                level = dice.choice([0, 0, 1, 2, 3])
                order = Order(
                    f"j{dice.randrange(30)}",
                    Submitter("user", "1"),
                    NEED,
                    b"",
                    band=dice.choice([Band.SCHEDULED, Band.IMMEDIATE, Band.BULK]),
                    level=level or 1,
                    elastic=not level,
                    delay=dice.choice([0, 0, 5 * SECOND]),
                )
                await store.put([order])
            case 3:
                held += (await store.join("w", dice.randrange(1, 5), [NEED])).starts
            case 4:
                await store.admit(Order(f"i{number}", Submitter("user", str(number)), NEED, b""))
            case 5:
                done = [Finish(start.lease) for start in held if dice.random() < 0.6]
                held = [start for start in held if Finish(start.lease) not in done]
                held += (await store.finish("w", done)).starts
            case 6:
                [view] = await store.read([f"j{dice.randrange(30)}"])
                if view and view.position:
                    await store.cancel(view.job.id, "")
            case 7:
                await store.tick()
        picture.follow(await store.news(picture.last_id, 0.001))
        fresh = await take_picture(store)
        assert {name: orders for name, orders in picture.lanes.items() if orders} == {
            name: orders for name, orders in fresh.lanes.items() if orders
        }
        assert picture.runs == fresh.runs


async def test_a_reader_waits_for_what_happens_next(store: Store) -> None:
    survey = await store.survey(600)
    waiting = asyncio.create_task(store.news(survey.last_id, 30))
    await asyncio.sleep(0)
    await store.put([Order("a", Submitter("user", "1"), NEED, b"")])
    [entry] = await waiting
    assert entry.number == survey.last_number + 1
    assert any(isinstance(event, Added) for event in entry.events)


async def test_starts_ends_stops_and_versions_are_told(store: Store) -> None:
    who = Submitter("user", "1")
    survey = await store.survey(600)
    await store.put([Order("a", who, NEED, b"")])
    [start] = (await store.join("w", 1, [NEED])).starts
    await store.put([Order("a", who, NEED, b"")])
    await store.cancel("a", "no")
    await store.finish("w", [Finish(start.lease)])
    entries = await store.news(survey.last_id, 1)
    told = [event for entry in entries for event in entry.events]
    record = start.lease.record
    [started] = [event for event in told if isinstance(event, Started)]
    assert (started.record, started.version, started.attempt, started.kind, started.worker) == (
        record,
        1,
        1,
        Kind.SPECIFIC,
        "w",
    )
    assert Stopping(record) in told
    assert Ended(record, "cancelled") in told
    assert Freed(record) in told
    assert [event.older for event in told if isinstance(event, Versioned)] == [record]


async def test_what_happened_while_nobody_listened_is_a_gap(store: Store, clock: Clock) -> None:
    first = await store.survey(60)
    clock.now += 61 * SECOND
    await store.put([Order("a", Submitter("user", "1"), NEED, b"")])
    second = await store.survey(60)
    await store.put([Order("b", Submitter("user", "1"), NEED, b"")])
    heard, entry = await store.news(first.last_id, 1)
    assert heard.number > first.last_number + 1
    assert (heard.id, heard.number) == (second.last_id, second.last_number)
    assert entry.number == heard.number + 1


async def test_a_place_that_is_taken_is_told_from_one_that_is_left(store: Store) -> None:
    await store.put([Order(id, Submitter("user", id), NEED, b"") for id in "abc"])
    survey = await store.survey(600)
    [lane] = survey.lanes
    first, _, third = await store.places(lane, b"", 9)
    await store.cancel("c", "")
    await store.join("w", 1, [NEED])
    told = [event for entry in await store.news(survey.last_id, 1) for event in entry.events]
    assert [event for event in told if isinstance(event, Taken)] == [Taken(lane, first)]
    assert [event for event in told if isinstance(event, Removed)] == [Removed(lane, third)]


async def test_runs_that_did_not_do_their_work_are_told_with_the_reason(store: Store, clock: Clock) -> None:
    who = Submitter("user", "1")
    await store.configure(Settings(attempts=2, lease=10 * SECOND, backoff=SECOND, most_backoff=SECOND))
    survey = await store.survey(600)
    await store.put([Order("a", who, NEED, b"")])
    [start] = (await store.join("w", 1, [NEED])).starts
    again = (await store.hand_back("w", [start.lease])).starts[0]
    await store.finish("w", [Finish(again.lease, "error", "for a while", transient=True)])
    clock.now += 2 * SECOND
    [third] = (await store.take("w")).starts
    await store.renew("w", [third.lease])
    clock.now += 20 * SECOND
    await store.tick()
    entries = await store.news(survey.last_id, 1)
    told = [event for entry in entries for event in entry.events if isinstance(event, Returned | Ended)]
    record = start.lease.record
    assert told == [
        Returned(record, "handed-back"),
        Returned(record, "error"),
        Returned(record, "lost"),
        Ended(record, "attempts"),
    ]
