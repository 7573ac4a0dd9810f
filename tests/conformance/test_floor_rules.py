"""Other cases of the Floor's rules: stops, sessions, drains, new limits, bounded steps."""

from contextlib import suppress

import pytest

from maitred.core.job import Band, Finish, Order, Put, Submitter
from maitred.core.settings import MINUTE, SECOND, Settings
from maitred.errors import SettingsForbidden, StoreError
from tests.conformance.floor import FAST, MEDIUM, NEED, POLICIES, SLOW, Floor, classes


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
