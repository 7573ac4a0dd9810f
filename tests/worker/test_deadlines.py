"""One timer tells each run that its time is over: never early, never twice, and none that has ended."""

import asyncio
import time

import pytest

from maitred.worker.deadlines import Deadlines


class Runner:
    """A run that notes when it is told that it is late."""

    def __init__(self, told: list["Runner"], seconds: float) -> None:
        self.at = time.monotonic() + seconds
        self.told_at: list[float] = []
        self.is_late = asyncio.Event()
        self._told = told

    def late(self) -> None:
        self.told_at.append(time.monotonic())
        self._told.append(self)
        self.is_late.set()


@pytest.fixture
def told() -> list[Runner]:
    return []


async def test_runs_are_told_in_the_order_of_their_limits_however_they_began(told: list[Runner]) -> None:
    deadlines = Deadlines()
    runs = [Runner(told, seconds) for seconds in (0.06, 0.02, 3600, 0.04)]
    for run in runs:
        deadlines.watch(run)
    await runs[0].is_late.wait()
    assert told == [runs[1], runs[3], runs[0]]
    assert all(run.told_at[0] >= run.at for run in told)
    deadlines.close()


async def test_a_limit_can_come_forward(told: list[Runner]) -> None:
    deadlines = Deadlines()
    run, other = Runner(told, 3600), Runner(told, 3600)
    deadlines.watch(run)
    deadlines.watch(other)
    run.at = time.monotonic() + 0.02
    deadlines.watch(run)
    await run.is_late.wait()
    assert told == [run]
    deadlines.close()


async def test_a_limit_that_is_past_is_told_at_the_next_chance(told: list[Runner]) -> None:
    deadlines = Deadlines()
    run = Runner(told, -1)
    deadlines.watch(run)
    assert told == [], "not in the midst of what the caller does"
    await run.is_late.wait()


async def test_a_run_that_has_ended_is_told_nothing(told: list[Runner]) -> None:
    deadlines = Deadlines()
    ended, later = Runner(told, 0.01), Runner(told, 0.03)
    deadlines.watch(ended)
    deadlines.watch(later)
    deadlines.drop(ended)
    await later.is_late.wait()
    assert told == [later]


async def test_a_run_that_was_told_is_not_told_again(told: list[Runner]) -> None:
    deadlines = Deadlines()
    first, second = Runner(told, 0.01), Runner(told, 0.03)
    deadlines.watch(first)
    deadlines.watch(second)
    await second.is_late.wait()
    assert told == [first, second]


async def test_many_short_runs_leave_nothing_behind(told: list[Runner]) -> None:
    deadlines = Deadlines()
    for _ in range(1000):
        run = Runner(told, 3600)
        deadlines.watch(run)
        deadlines.drop(run)
    assert not deadlines._watched
    deadlines.close()
