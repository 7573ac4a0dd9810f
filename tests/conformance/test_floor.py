"""F1-F21 and F20: the Floor's cases, on the reference and on the real stores."""

from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest

from maitred.core.classes import DurationClass, Limit
from maitred.core.job import Band, Finish, Lease, Lower, Order, Put, Start, Stop, Submitter
from maitred.core.settings import MINUTE, SECOND, Settings
from maitred.errors import AlreadyEnded, LongerDuration, SettingsForbidden, StoreError
from maitred.store.port import Store
from tests.conftest import Clock

NEED = "handler:render"
FAST, MEDIUM, SLOW = 1, 2, 3
CAPS = (3, 10, 30)
POLICIES = ["borrow", "squeeze"]


def classes(*limits: int, caps: tuple[int, ...] = CAPS) -> tuple[DurationClass, ...]:
    """The classes with these limits; the first one's is the number of slots."""
    names = ("fast", "medium", "slow", "d", "e", "f", "g", "h")
    return tuple(
        DurationClass(name, cap * SECOND, Limit(limit) if at else None)
        for at, (name, cap, limit) in enumerate(zip(names, caps, limits, strict=False))
    )


class Floor:
    """A queue with one worker of some slots: jobs run until a test ends them."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self.store, self.clock = store, clock
        self.started: dict[str, Start] = {}
        self.order: list[str] = []
        self.told: list[Stop | Lower] = []
        self.names: dict[Lease, str] = {}
        self.people = 0

    async def open(
        self, *limits: int, policy: Any = "borrow", caps: tuple[int, ...] = CAPS, **more: Any
    ) -> None:
        """Open the queue with one worker that has as many slots as the first limit says."""
        settings = Settings(lease=60 * MINUTE, elastic=policy, classes=classes(*limits, caps=caps), **more)
        await self.store.configure(settings)
        self._note(await self.store.join("w", limits[0], [NEED]))

    def _note(self, shift: Any) -> None:
        for start in shift.starts:
            self._begin(start)

    def _begin(self, start: Start) -> None:
        self.started[start.id] = start
        self.names[start.lease] = start.id
        self.order.append(start.id)

    async def look(self) -> None:
        """Let the clock do its work and read what the worker was told."""
        await self.store.tick()
        await self._read()

    async def _read(self) -> None:
        for message in await self.store.park("w", 0.01):
            if isinstance(message, Start):
                self._begin(message)
            elif isinstance(message, Stop | Lower):
                self.told.append(message)

    async def put(self, id: str, level: int | None = None, *, duration: float = 0, **more: Any) -> Any:
        """Submit a job of its own submitter, elastic unless a class is given."""
        self.people += 1
        who = more.pop("who", Submitter("user", str(self.people)))
        order = Order(
            id, who, NEED, b"", level=level or 1, elastic=level is None, duration=int(duration * SECOND),
            delay=more.pop("delay", 0), **more,
        )  # fmt: skip
        [answer] = await self.store.put([order])
        await self._read()
        return answer

    async def admit(self, id: str, who: str = "s") -> str:
        """Ask for an interactive job; answer why it was denied, if it was."""
        admission = await self.store.admit(Order(id, Submitter("user", who), NEED, b""))
        await self._read()
        return admission.denied

    async def finish(self, id: str, code: str = "") -> None:
        """End a job, or confirm that it was stopped."""
        await self.end(self.started.pop(id), code)

    async def end(self, start: Start, code: str = "") -> None:
        """End a run, or confirm that it was stopped."""
        self._note(await self.store.finish("w", [Finish(start.lease, code)]))
        await self._read()

    async def after(self, seconds: float) -> None:
        """Let time pass."""
        self.clock.now += round(seconds * SECOND)
        await self.look()

    async def grants(self) -> dict[str, tuple[int, float]]:
        """Give the class that each running job holds and the seconds granted to it."""
        return {v.job.id: (v.holding or 0, (v.granted or 0) / SECOND) for v in await self.store.running()}

    async def line(self) -> list[str]:
        """Give the waiting jobs in line order."""
        return [view.job.id for view in (await self.store.line(None, 500)).views]

    def stops(self) -> list[tuple[str, str, float]]:
        """Give who was told to stop, why, and at which limit."""
        return [(self.names[m.lease], m.code, m.limit / SECOND) for m in self.told if isinstance(m, Stop)]

    def lowered(self) -> dict[str, float]:
        """Give whose limit was lowered, and to what."""
        return {self.names[m.lease]: m.duration / SECOND for m in self.told if isinstance(m, Lower)}


@pytest.fixture
async def floor(store: Store, clock: Clock) -> AsyncIterator[Floor]:
    """A floor; whatever a test does to it, the invariants hold at its end."""
    floor = Floor(store, clock)
    yield floor
    assert await store.check() == []


@pytest.mark.parametrize("policy", POLICIES)
async def test_f1_an_elastic_job_on_an_idle_floor_starts_at_once_and_may_run_long(
    floor: Floor, policy: str
) -> None:
    await floor.open(4, 2, 1, policy=policy)
    await floor.put("e")
    assert floor.started["e"].duration == 30 * SECOND


async def test_f2_squeeze_gives_three_elastic_jobs_three_classes(floor: Floor) -> None:
    await floor.open(4, 2, 1, policy="squeeze")
    for id in ("a", "b", "c"):
        await floor.put(id)
    assert await floor.grants() == {"a": (3, 30), "b": (2, 10), "c": (1, 3)}


async def test_f2_borrow_lets_three_elastic_jobs_run_long_while_nobody_waits(floor: Floor) -> None:
    await floor.open(4, 2, 1)
    for id in ("a", "b", "c"):
        await floor.put(id)
    assert await floor.grants() == {"a": (1, 30), "b": (1, 30), "c": (1, 30)}
    await floor.after(29)
    assert floor.told == []


@pytest.mark.parametrize("policy", POLICIES)
async def test_f3_a_slow_job_starts_beside_an_elastic_one(floor: Floor, policy: str) -> None:
    await floor.open(4, 2, 1, policy=policy)
    await floor.put("e")
    await floor.after(2)
    await floor.put("s", SLOW)
    assert "s" in floor.started
    assert floor.lowered() == ({"e": 10} if policy == "squeeze" else {})


async def test_f4_the_longest_elastic_job_gives_way_as_far_as_the_slow_one_needs(floor: Floor) -> None:
    await floor.open(4, 2, 1, policy="squeeze")
    await floor.put("a")
    await floor.put("b")
    await floor.after(1)
    await floor.put("s", SLOW)
    assert await floor.grants() == {"a": (1, 3), "b": (2, 10), "s": (3, 30)}


async def test_f5_an_elastic_job_past_its_new_limit_stops_at_once(floor: Floor) -> None:
    await floor.open(4, 2, 1, policy="squeeze")
    await floor.put("e")
    await floor.after(12)
    await floor.put("s", SLOW)
    assert floor.stops() == [("e", "cut", 10)]
    assert "s" not in floor.started
    await floor.finish("e", "cut")
    assert "s" in floor.started


@pytest.mark.parametrize("policy", POLICIES)
async def test_f6_a_slow_job_that_waits_for_its_level_does_not_block_a_fast_one(
    floor: Floor, policy: str
) -> None:
    await floor.open(4, 2, 1, policy=policy)
    await floor.put("s1", SLOW)
    await floor.put("s2", SLOW)
    await floor.put("f", FAST)
    assert floor.order == ["s1", "f"]
    assert await floor.line() == ["s2"]


@pytest.mark.parametrize("policy", POLICIES)
async def test_f7_an_overdue_elastic_job_gives_way_to_a_fast_one(floor: Floor, policy: str) -> None:
    await floor.open(4, 2, 1, policy=policy)
    await floor.put("e")
    for id in ("a", "b", "c"):
        await floor.put(id, FAST)
    await floor.after(5)
    await floor.put("f", FAST)
    assert floor.stops() == [("e", "cut", 3)]
    await floor.finish("e", "cut")
    assert floor.order[-1] == "f"


@pytest.mark.parametrize("policy", POLICIES)
async def test_f8_an_elastic_job_keeps_its_fastest_cap(floor: Floor, policy: str) -> None:
    await floor.open(4, 2, 1, policy=policy)
    await floor.put("e")
    for id in ("a", "b", "c"):
        await floor.put(id, FAST)
    await floor.after(1)
    await floor.put("f", FAST)
    assert floor.stops() == []
    await floor.after(1.9)
    assert floor.stops() == []
    await floor.after(0.1)
    assert floor.stops() == ([("e", "cut", 3)] if policy == "borrow" else [])
    assert floor.lowered() == ({} if policy == "borrow" else {"e": 3})


@pytest.mark.parametrize("policy", POLICIES)
async def test_f8_an_earlier_finish_lets_the_fast_one_start_before(floor: Floor, policy: str) -> None:
    await floor.open(4, 2, 1, policy=policy)
    await floor.put("e")
    for id in ("a", "b", "c"):
        await floor.put(id, FAST)
    await floor.after(1)
    await floor.put("f", FAST)
    await floor.finish("b")
    assert floor.order[-1] == "f"
    await floor.after(10)
    assert floor.stops() == []


async def test_f9_exactly_one_elastic_job_stops_for_one_fast_one(floor: Floor) -> None:
    await floor.open(4, 4, 4)
    for id in ("a", "b", "c", "d"):
        await floor.put(id)
    await floor.after(5)
    await floor.put("f", FAST)
    for _ in range(3):
        await floor.look()
    assert floor.stops() == [("d", "cut", 3)]
    await floor.finish("d", "cut")
    assert floor.order[-1] == "f"
    await floor.look()
    assert len(floor.stops()) == 1
    assert await floor.line() == []


async def test_f10_an_interactive_job_counts_on_the_first_level_only(floor: Floor) -> None:
    await floor.open(4, 2, 1)
    assert await floor.admit("i") == ""
    status = await floor.store.status()
    assert (status.limits, status.used) == ((4, 2, 1), (1, 0, 0))


@pytest.mark.parametrize("policy", POLICIES)
async def test_f11_with_no_free_slot_it_is_denied_and_nothing_in_line_changes(
    floor: Floor, policy: str
) -> None:
    await floor.open(1, 1, 1, policy=policy)
    await floor.put("f", SLOW)
    await floor.put("g", FAST)
    before = await floor.line()
    assert await floor.admit("i") == "slots"
    assert await floor.line() == before
    assert await floor.store.read(["i"]) == [None]
    assert floor.told == []


async def test_f11_under_squeeze_a_denied_one_lowers_an_elastic_job_by_one_class(floor: Floor) -> None:
    await floor.open(1, 1, 1, policy="squeeze")
    await floor.put("e")
    assert await floor.admit("i") == "slots"
    assert floor.lowered() == {"e": 10}


@pytest.mark.parametrize("policy", POLICIES)
async def test_f12_an_interactive_job_is_halted_before_an_elastic_one_is_touched(
    floor: Floor, policy: str
) -> None:
    await floor.open(4, 2, 1, policy=policy)
    await floor.put("a", FAST)
    await floor.put("b", FAST)
    await floor.put("e")
    await floor.admit("i")
    await floor.after(5)
    await floor.put("f", FAST)
    await floor.look()
    assert [(m.code, m.lease) for m in floor.told] == [("halted", floor.started["i"].lease)]
    await floor.finish("i", "halted")
    assert floor.order[-1] == "f"


@pytest.mark.parametrize("policy", POLICIES)
async def test_f13_an_elastic_job_stands_among_the_fast_ones(floor: Floor, policy: str) -> None:
    await floor.open(1, 1, 1, policy=policy)
    await floor.put("first", FAST)
    await floor.put("F1", FAST)
    await floor.put("E1")
    await floor.put("F2", FAST)
    for id in ("first", "F1", "E1"):
        await floor.finish(id)
    assert floor.order == ["first", "F1", "E1", "F2"]


@pytest.mark.parametrize("policy", POLICIES)
async def test_f14_a_flood_of_fast_jobs_does_not_keep_a_slow_one_from_its_level(
    floor: Floor, policy: str
) -> None:
    await floor.open(4, 2, 1, policy=policy)
    await floor.put("s1", SLOW)
    for id in ("a", "b", "c"):
        await floor.put(id, FAST)
    await floor.put("s2", SLOW)
    for number in range(20):
        await floor.put(f"f{number}", FAST)
    await floor.finish("s1")
    assert floor.order[-1] == "s2"


async def test_f18_a_cancel_in_line_moves_those_behind_up_and_nobody_before(floor: Floor) -> None:
    await floor.open(1, 1, 1)
    for id in ("r", "a", "b", "c"):
        await floor.put(id, FAST)
    await floor.store.cancel("b", "no")
    positions = [view.position for view in await floor.store.read(["a", "c"]) if view]
    assert positions == [1, 2]


async def test_f19_a_waiting_slow_job_lowers_its_duration_and_keeps_its_place(floor: Floor) -> None:
    await floor.open(4, 1, 1)
    await floor.put("s1", SLOW)
    await floor.put("s2", SLOW)
    await floor.put("s3", SLOW)
    with pytest.raises(LongerDuration):
        await floor.store.shorten("s2", 31 * SECOND)
    await floor.store.shorten("s3", 3 * SECOND)
    await floor.look()
    assert floor.order == ["s1", "s3"]
    assert floor.started["s3"].duration == 3 * SECOND
    with pytest.raises(LongerDuration):
        await floor.store.shorten("s3", 4 * SECOND)


async def test_f19_a_lowered_job_stands_where_it_stood(floor: Floor) -> None:
    await floor.open(1, 1, 1)
    await floor.put("r", FAST)
    for id in ("a", "s", "b"):
        await floor.put(id, SLOW if id == "s" else FAST)
    await floor.store.shorten("s", 2 * SECOND)
    assert await floor.line() == ["a", "s", "b"]


async def test_f19_a_running_job_is_shortened_and_gives_back_the_levels_it_no_longer_needs(
    floor: Floor,
) -> None:
    await floor.open(4, 1, 1)
    await floor.put("s1", SLOW)
    await floor.put("s2", SLOW)
    await floor.after(1)
    await floor.store.shorten("s1", 3 * SECOND)
    await floor.look()
    assert floor.order == ["s1", "s2"]
    assert floor.lowered() == {"s1": 3}
    await floor.after(1)
    await floor.store.shorten("s2", 1 * SECOND)
    await floor.look()
    assert floor.stops() == [("s2", "time-limit", 1)]
    await floor.finish("s2", "time-limit")
    with pytest.raises(AlreadyEnded):
        await floor.store.shorten("s2", 1 * SECOND)


@pytest.mark.parametrize("policy", POLICIES)
async def test_f20_with_equal_limits_jobs_start_in_line_order(floor: Floor, policy: str) -> None:
    await floor.open(2, 2, 2, policy=policy)
    mix = [FAST, SLOW, None, MEDIUM, SLOW, None, FAST, MEDIUM]
    for number, level in enumerate(mix):
        await floor.put(str(number), level)
    while floor.started:
        await floor.finish(next(iter(floor.started)))
    assert floor.order == [str(number) for number in range(len(mix))]


async def test_f20_one_class_is_plain_order(floor: Floor) -> None:
    await floor.open(1, caps=(5,))
    for number in range(4):
        await floor.put(str(number), None if number % 2 else FAST)
    for number in range(4):
        assert floor.started[str(number)].duration == 5 * SECOND
        await floor.finish(str(number))


async def test_f21_a_request_of_five_seconds_runs_in_the_class_that_holds_it(floor: Floor) -> None:
    await floor.open(4, 2, 1)
    await floor.put("j", MEDIUM, duration=5)
    assert await floor.grants() == {"j": (2, 5)}


@pytest.mark.parametrize("number", range(1, 9))
@pytest.mark.parametrize("policy", POLICIES)
async def test_any_number_of_classes_keeps_its_limits(floor: Floor, number: int, policy: str) -> None:
    limits = tuple(range(8, 8 - number, -1))
    await floor.open(*limits, policy=policy, caps=tuple(range(1, number + 1)))
    for at in range(20):
        await floor.put(f"{at}", number)
    assert len(floor.started) == limits[-1]
    for at in range(20):
        await floor.put(f"f{at}", FAST)
    assert len(floor.started) == 8


async def test_a_job_put_again_does_not_start_before_its_last_stop_is_confirmed(floor: Floor) -> None:
    await floor.open(4, 2, 1)
    who = Submitter("user", "me")
    await floor.put("a", FAST, who=who)
    old = floor.started.pop("a")
    await floor.store.remove("a")
    assert isinstance(await floor.put("a", FAST, who=who), Put)
    assert "a" not in floor.started
    assert await floor.line() == ["a"]
    await floor.end(old, "deleted")
    assert "a" in floor.started


async def test_a_new_version_waits_for_the_stop_of_the_one_that_is_cut(floor: Floor) -> None:
    await floor.open(1, 1, 1)
    who = Submitter("user", "me")
    await floor.put("a", who=who)
    await floor.after(5)
    await floor.put("a", FAST, who=who)
    assert floor.stops() == [("a", "cut", 3)]
    old = floor.started.pop("a")
    await floor.put("b", FAST)
    await floor.end(old, "cut")
    assert floor.order == ["a", "a"]


async def test_a_put_cannot_make_a_waiting_job_longer(floor: Floor) -> None:
    await floor.open(1, 1, 1)
    await floor.put("r", FAST)
    who = Submitter("user", "me")
    await floor.put("a", MEDIUM, who=who)
    assert await floor.put("a", SLOW, who=who) == "longer-duration"
    assert await floor.put("a", MEDIUM, duration=9, who=who) != "longer-duration"
    assert await floor.put("a", MEDIUM, who=who) == "longer-duration"
    assert await floor.put("a", FAST, who=who) != "longer-duration"
    assert await floor.put("a", who=who) != "longer-duration"


async def test_interactive_jobs_are_bounded_per_submitter_and_refused_while_paused(floor: Floor) -> None:
    await floor.open(4, 2, 1)
    assert await floor.admit("i", "ann") == ""
    assert await floor.admit("j", "ann") == "per-submitter"
    assert await floor.admit("i", "bob") == "known"
    await floor.store.pause("op", "")
    assert await floor.admit("k", "bob") == "paused"


async def test_a_lost_worker_ends_its_interactive_jobs(floor: Floor) -> None:
    await floor.open(4, 2, 1)
    await floor.admit("i")
    await floor.after(61 * 60)
    [view] = await floor.store.read(["i"])
    assert view
    assert (view.job.code, view.job.band) == ("halted", Band.INTERACTIVE)
    assert await floor.put("i", FAST, who=Submitter("user", "s")) != "interactive"


async def test_a_draining_worker_counts_on_the_higher_levels_and_gives_no_credit(floor: Floor) -> None:
    await floor.open(2, 1, 1)
    await floor.put("s1", SLOW)
    await floor.put("e")
    await floor.after(5)
    await floor.store.join("v", 2, [NEED])
    await floor.store.leave("w")
    await floor.put("s2", SLOW)
    await floor.put("f1", FAST)
    await floor.put("f2", FAST)
    await floor.put("f3", FAST)
    assert floor.told == []
    assert await floor.line() == ["s2", "f3"]
    status = await floor.store.status()
    assert (status.limits, status.used) == ((2, 1, 1), (4, 1, 1))


async def test_classes_cannot_change_while_a_job_waits_or_runs_but_limits_can(floor: Floor) -> None:
    await floor.open(4, 2, 1)
    await floor.put("s1", SLOW)
    await floor.put("s2", SLOW)
    with pytest.raises(SettingsForbidden):
        await floor.store.configure(Settings(classes=classes(4, 2, 1, caps=(3, 10, 60)), lease=60 * MINUTE))
    with pytest.raises(SettingsForbidden):
        await floor.store.configure(Settings(classes=classes(4, 2, 1), elastic="squeeze", lease=60 * MINUTE))
    await floor.store.configure(Settings(classes=classes(4, 2, 2), lease=60 * MINUTE))
    await floor.look()
    assert floor.order == ["s1", "s2"]


async def test_a_stop_is_credited_to_the_next_if_the_one_who_asked_goes(floor: Floor) -> None:
    await floor.open(2, 2, 2)
    await floor.put("a")
    await floor.put("b")
    await floor.after(5)
    await floor.put("f", FAST)
    await floor.store.cancel("f", "")
    await floor.put("g", FAST)
    await floor.look()
    assert len(floor.stops()) == 1
    await floor.put("h", FAST)
    assert len(floor.stops()) == 2


@pytest.mark.parametrize("late", ["cut", ""])
async def test_units_return_once_whatever_arrives_twice_or_late(floor: Floor, late: str) -> None:
    await floor.open(1, 1, 1)
    await floor.put("e")
    await floor.after(5)
    await floor.put("f", FAST)
    lease = floor.started["e"].lease
    await floor.finish("e", late)
    again = await floor.store.finish("w", [Finish(lease, "cut")])
    assert again.lost == [lease]
    status = await floor.store.status()
    assert status.used == (1, 0, 0)
    [view] = await floor.store.read(["e"])
    assert view
    assert view.job.code == late


async def test_renewing_repeats_what_the_worker_may_have_missed(floor: Floor) -> None:
    await floor.open(2, 2, 1, policy="squeeze")
    await floor.put("e")
    await floor.put("s", SLOW)
    assert floor.lowered() == {"e": 10}
    floor.told.clear()
    await floor.store.renew("w", [start.lease for start in floor.started.values()])
    await floor.look()
    assert floor.lowered() == {"e": 10}


@pytest.mark.parametrize("slots", [4, 5])
async def test_nobody_gives_way_where_the_level_stays_full_all_the_same(floor: Floor, slots: int) -> None:
    await floor.open(slots, 3, 3, policy="squeeze")
    await floor.put("s1", SLOW)
    await floor.put("s2", SLOW)
    await floor.put("e")
    await floor.put("f", FAST)
    lower = Settings(classes=classes(slots, 1, 1), elastic="squeeze", lease=60 * MINUTE)
    await floor.store.configure(lower)
    await floor.after(5)
    await floor.put("s3", SLOW)
    assert floor.told == []
    assert await floor.line() == ["s3"]


async def test_as_many_give_way_as_a_level_over_its_limit_needs(floor: Floor) -> None:
    await floor.open(5, 3, 3, policy="squeeze")
    for id in ("e1", "e2", "e3"):
        await floor.put(id)
    lower = Settings(classes=classes(5, 1, 1), elastic="squeeze", lease=60 * MINUTE)
    await floor.store.configure(lower)
    await floor.after(5)
    await floor.put("s", SLOW)
    assert sorted(floor.stops()) == [(id, "cut", 3) for id in ("e1", "e2", "e3")]
    for id in ("e1", "e2", "e3"):
        await floor.finish(id, "cut")
    assert "s" in floor.started


async def test_an_interactive_job_that_was_deleted_does_not_start_again_before_it_has_stopped(
    floor: Floor,
) -> None:
    await floor.open(2)
    assert await floor.admit("i") == ""
    await floor.store.remove("i")
    assert await floor.admit("i") == "known"
    await floor.finish("i", "deleted")
    assert await floor.admit("i") == ""


async def test_a_worker_that_is_refused_changes_nothing(floor: Floor) -> None:
    await floor.open(1)
    await floor.store.pause("u", "")
    await floor.put("x", FAST, expires_at=floor.clock.now + SECOND)
    floor.clock.now += 2 * SECOND
    with suppress(StoreError):
        await floor.store.join("w2", 5000, [NEED])
    assert await floor.store.check() == []


async def test_one_step_ends_a_bounded_number_of_expired_jobs(floor: Floor) -> None:
    await floor.store.configure(Settings(lease=60 * MINUTE))
    expires = floor.clock.now + SECOND
    who = Submitter("user", "1")
    for first in range(0, 1000, 100):
        await floor.store.put(
            [Order(f"j{first + k}", who, NEED, b"", delay=0, expires_at=expires) for k in range(100)]
        )
    floor.clock.now += 2 * SECOND
    await floor.store.join("w", 1, [NEED])
    assert (await floor.store.line(None, 1)).total == 1000 - 2 * 100 - 256
    moment = await floor.store.tick()
    assert moment.next_at is not None
    assert moment.next_at <= moment.now
    await floor.look()
    assert (await floor.store.line(None, 1)).total == 0


async def test_each_of_many_newer_versions_gets_the_slot_of_an_older_one_in_one_step(floor: Floor) -> None:
    await floor.open(12, 12, 12)
    people = [Submitter("user", f"p{n}") for n in range(12)]
    for n, who in enumerate(people):
        await floor.put(f"e{n}", who=who)
    await floor.after(1)
    for n in reversed(range(12)):
        await floor.put(f"e{n}", FAST, who=people[n])
    await floor.after(5)
    assert len(floor.stops()) == 12


async def test_what_has_expired_in_line_takes_nothing_from_those_behind(floor: Floor) -> None:
    await floor.open(3, 3, 1)
    await floor.store.pause("u", "")
    for n in range(201):
        who = Submitter("user", f"x{n}")
        expires = floor.clock.now + SECOND
        late = Order(f"x{n}", who, NEED, b"", level=SLOW, elastic=False, delay=0, expires_at=expires)
        await floor.store.put([late])
    await floor.put("s", SLOW)
    for id in ("f1", "f2", "f3"):
        await floor.put(id, FAST)
    floor.clock.now += 2 * SECOND
    await floor.store.resume()
    await floor.look()
    assert floor.order == ["s", "f1", "f2"]
