"""F1-F21: the Floor's cases, on the reference and on the real stores."""

import pytest

from maitred.core.settings import SECOND
from maitred.errors import AlreadyEnded, LongerDuration
from tests.conformance.floor import FAST, MEDIUM, POLICIES, SLOW, Floor


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
