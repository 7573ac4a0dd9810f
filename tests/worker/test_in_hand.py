"""Whatever the order in which orders come, each job begins at most once, and its end is told once."""

import asyncio
import time
from collections.abc import AsyncIterator
from itertools import count
from typing import cast

import pytest

from maitred.core.job import Finish, Lease, Lower, Moment, Shift, Start, Stop
from maitred.core.settings import SECOND
from maitred.worker.in_hand import InHand
from maitred.worker.outcome import Outcome, completed
from maitred.worker.reach import Reach
from maitred.worker.reports import Reports
from maitred.worker.run import Run
from maitred.worker.store_clock import StoreClock
from tests.worker.granting import micros
from tests.worker.runs import a_voice

MINUTE = 60.0
_numbers = count(1)


class Told:
    """What the worker would tell the store."""

    worker = "w"

    def __init__(self) -> None:
        self.ends: list[Finish] = []
        self.handed_back: list[Lease] = []
        self.something = asyncio.Event()

    def has(self, lease: Lease) -> bool:
        """Nothing was heard of by the store yet."""
        return any(end.lease == lease for end in self.ends)

    def tell(self, finish: Finish) -> None:
        self.ends.append(finish)
        self.something.set()

    async def hand_back(self, leases: list[Lease]) -> None:
        self.handed_back += leases
        self.something.set()


class Table:
    """What a worker has in hand, with work that goes on until it is stopped or let go."""

    def __init__(self) -> None:
        self.told = Told()
        self.begun: list[str] = []
        self.let_go = asyncio.Event()
        self.stopping = asyncio.Event()
        self.clock = StoreClock()
        self.reach = Reach("w")
        reports = cast(Reports, self.told)
        self.hand = InHand(
            self.carry_out,
            self.clock,
            self.reach,
            reports,
            self.stopping,
            voice=a_voice(),
            time_limit=micros(MINUTE),
        )
        self.clock.hear(self.now())

    async def carry_out(self, run: Run) -> Outcome | None:
        self.begun.append(run.start.id)
        await self.let_go.wait()
        return completed("done")

    def now(self) -> int:
        return time.time_ns() // 1000

    def start(self, ago: float = 0, duration: float = MINUTE) -> Start:
        n = next(_numbers)
        lease = Lease(n, b"t" * 16)
        return Start(lease, f"job-{n}", 1, 1, "command", b"{}", self.now() - micros(ago), micros(duration))

    async def ends(self) -> list[tuple[str, str]]:
        """Wait until something was told, and give the codes and messages."""
        await asyncio.wait_for(self.told.something.wait(), 30)
        await self.settled()
        return [(end.code, end.message) for end in self.told.ends]

    async def settled(self) -> None:
        """Let everything happen that can happen without time passing."""
        for _ in range(10):
            await asyncio.sleep(0)

    def renew(self) -> None:
        self.hand.renewed(self.now())


@pytest.fixture
async def table() -> AsyncIterator[Table]:
    table = Table()
    yield table
    tasks = [run.task for run in table.hand.runs.values()]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, *table.reach.errands, return_exceptions=True)
    table.hand.close()


CUT = "time limit 10 s: cut so that a waiting job could start"


async def test_a_limit_counts_from_the_lease(table: Table) -> None:
    start = table.start(ago=40)
    table.hand.begin(start)
    run = table.hand.runs[start.lease]
    assert run.at == table.clock.local_time(start.start + start.duration)
    assert run.at - time.monotonic() < 20.5


async def test_a_start_in_the_inbox_tells_what_time_it_is_in_the_store(table: Table) -> None:
    table.clock.hear(table.now() - micros(5))
    start = table.start(duration=30)
    table.hand.receive(start)
    assert table.hand.runs[start.lease].at - time.monotonic() <= 30, "the last answer was long on its way"


async def test_a_job_whose_time_is_over_before_it_could_begin_is_handed_back_unbegun(table: Table) -> None:
    start = table.start(ago=70)
    table.hand.begin(start)
    await table.ends()
    assert (table.told.handed_back, table.begun, table.told.ends) == ([start.lease], [], [])


async def test_a_start_that_comes_twice_begins_once(table: Table) -> None:
    start = table.start()
    table.hand.begin(start)
    table.hand.receive(start)
    await table.settled()
    table.let_go.set()
    assert await table.ends() == [("", "")]
    table.hand.begin(start)
    await table.settled()
    assert table.begun == [start.id]


async def test_a_start_that_comes_again_with_less_time_lowers_the_limit(table: Table) -> None:
    start = table.start(ago=20)
    table.hand.begin(start)
    table.hand.begin(start._replace(duration=micros(10)))
    assert await table.ends() == [("time-limit", "it ran longer than its time limit of 10 s")]


async def test_a_start_that_comes_again_with_more_or_no_time_changes_nothing(table: Table) -> None:
    start = table.start()
    table.hand.begin(start)
    before = table.hand.runs[start.lease].at
    for duration in (0.0, MINUTE, 2 * MINUTE):
        table.hand.begin(start._replace(duration=micros(duration)))
    assert table.hand.runs[start.lease].at == before


async def test_a_job_whose_stop_overtakes_its_start_is_handed_back_once_and_never_begins(
    table: Table,
) -> None:
    start = table.start(ago=12)
    table.hand.stop(Stop(start.lease, "cut", micros(10)))
    table.hand.stop(Stop(start.lease, "cut", micros(10)))
    table.hand.begin(start)
    await table.ends()
    assert (table.told.handed_back, table.begun, table.told.ends) == ([start.lease], [], [])


async def test_a_lower_limit_that_overtakes_its_start_is_kept(table: Table) -> None:
    start = table.start(ago=9.7)
    table.hand.lower(Lower(start.lease, micros(10), "cut"))
    table.hand.lower(Lower(start.lease, micros(20), "time-limit"))
    table.renew()
    table.hand.begin(start)
    assert await table.ends() == [("cut", CUT)]
    assert table.begun == [start.id]


async def test_a_job_that_had_its_lower_limit_before_it_came_never_begins(table: Table) -> None:
    start = table.start(ago=12)
    table.hand.lower(Lower(start.lease, micros(10), "cut"))
    table.hand.begin(start)
    await table.ends()
    assert (table.told.handed_back, table.begun, table.told.ends) == ([start.lease], [], [])


async def test_the_code_of_a_lower_limit_is_told_also_if_the_start_knew_of_it(table: Table) -> None:
    start = table.start(ago=9.7, duration=10)
    order = Lower(start.lease, micros(10), "cut")
    table.hand.lower(order)
    table.hand.begin(start)
    assert await table.ends() == [("cut", CUT)]

    other = table.start(ago=9.7, duration=10)
    table.hand.begin(other)
    table.hand.lower(order._replace(lease=other.lease))
    table.told.something.clear()
    assert await table.ends() == [("cut", CUT)] * 2


async def test_a_limit_is_never_raised(table: Table) -> None:
    start = table.start()
    table.hand.begin(start)
    table.hand.lower(Lower(start.lease, micros(30), "cut"))
    before = table.hand.runs[start.lease].at
    table.hand.lower(Lower(start.lease, micros(40), "time-limit"))
    run = table.hand.runs[start.lease]
    assert (run.at, run.code, run.limit) == (before, "cut", micros(30))


async def test_orders_that_come_twice_or_after_the_end_are_told_of_once(table: Table) -> None:
    start = table.start(ago=20)
    table.hand.begin(start)
    for _ in range(2):
        table.hand.lower(Lower(start.lease, micros(10), "cut"))
        table.hand.stop(Stop(start.lease, "cancelled"))
    assert await table.ends() == [("cancelled", "it was cancelled")]
    table.hand.stop(Stop(start.lease, "cut"))
    table.hand.lower(Lower(start.lease, 1, "cut"))
    await table.settled()
    assert len(table.told.ends) == 1


async def test_the_first_reason_is_told(table: Table) -> None:
    start = table.start(ago=20)
    table.hand.begin(start)
    table.hand.stop(Stop(start.lease, "cut", micros(10)))
    table.hand.stop(Stop(start.lease, "cancelled"))
    assert await table.ends() == [("cut", CUT)]


async def test_a_reason_that_comes_after_the_loss_was_noticed_is_told(table: Table) -> None:
    start = table.start(ago=20)
    table.hand.begin(start)
    table.hand.lose(start.lease)
    table.hand.stop(Stop(start.lease, "cut", micros(10)))
    assert await table.ends() == [("cut", CUT)]


async def test_work_that_was_lost_for_no_known_reason_was_stopped(table: Table) -> None:
    start = table.start()
    table.hand.begin(start)
    table.hand.lose(start.lease)
    assert await table.ends() == [("stopped", "it was stopped")]


async def test_a_stop_that_comes_after_the_end_of_a_long_run_changes_nothing(table: Table) -> None:
    start = table.start()
    table.hand.begin(start)
    await table.settled()
    for _ in range(3):
        table.renew()
    table.let_go.set()
    await table.ends()
    for _ in range(3):
        table.hand.stop(Stop(start.lease, "cut"))
        table.renew()
    assert await table.ends() == [("", "")]


async def test_a_stop_for_work_that_was_given_up_does_not_free_its_slot_before_it_has_ended(
    table: Table,
) -> None:
    tidy = asyncio.Event()

    async def slow(run: Run) -> Outcome | None:
        try:
            await asyncio.Event().wait()
        finally:
            await tidy.wait()
        return None

    table.hand._carry_out = slow
    start = table.start()
    table.hand.begin(start)
    await table.settled()
    for _ in range(3):
        table.renew()
    table.hand.give_up()
    table.hand.stop(Stop(start.lease, "cut"))
    await table.settled()
    assert (table.told.ends, table.hand.ending()) == ([], [start.lease])
    tidy.set()
    await table.settled()
    assert (table.told.ends, table.hand.ending()) == ([], [])


async def test_what_was_given_up_is_handed_back_if_a_renewal_says_that_it_is_still_ours(table: Table) -> None:
    start = table.start()
    table.hand.begin(start)
    await table.settled()
    table.hand.give_up()
    await table.settled()
    assert table.reach.doubtful.is_set(), "a renewal tells whose it is"
    table.hand.hand_back_given_up(Shift([], [start], Moment(table.now(), None)))
    table.hand.begin(start)
    await table.ends()
    assert (table.told.handed_back, table.told.ends, table.begun) == ([start.lease], [], [start.id])


async def test_what_comes_to_a_worker_that_stops_is_handed_back(table: Table) -> None:
    start = table.start()
    table.stopping.set()
    table.hand.begin(start)
    await table.ends()
    assert (table.told.handed_back, table.begun) == ([start.lease], [])


async def test_an_inbox_start_from_before_the_last_renewal_is_passed_over(table: Table) -> None:
    start = table.start(ago=1)
    table.renew()
    table.hand.receive(start)
    await table.settled()
    assert table.begun == []


async def test_nothing_is_remembered_for_longer_than_two_renewals(table: Table) -> None:
    start, unknown, stopped = table.start(), table.start(), table.start()
    table.hand.begin(start)
    table.hand.lower(Lower(unknown.lease, SECOND, "cut"))
    table.hand.stop(Stop(stopped.lease, "cut"))
    table.let_go.set()
    await table.ends()
    for _ in range(3):
        table.renew()
    assert (table.hand._past, table.hand._lowered, table.hand.runs) == ({}, {}, {})


async def test_the_next_stage_of_a_job_is_another_lease_with_a_limit_of_its_own(table: Table) -> None:
    first = table.start(ago=40, duration=50)
    table.hand.begin(first)
    table.let_go.set()
    assert await table.ends() == [("", "")]
    table.let_go.clear()
    token = b"u" * 16
    second = first._replace(lease=Lease(first.lease.record, token), start=table.now())
    table.hand.begin(second)
    table.hand.lose(first.lease)
    table.hand.stop(Stop(first.lease, "cancelled"))
    await table.settled()
    run = table.hand.runs[second.lease]
    assert (table.begun, run.why) == ([first.id, first.id], None)
    assert run.at == table.clock.local_time(second.start + second.duration)
    table.hand.lose(second.lease)
    await table.settled()
    assert [end.lease.token for end in table.told.ends] == [b"t" * 16, token]
    assert table.told.ends[1].code == "stopped"


async def test_a_stage_that_comes_while_the_worker_stops_is_handed_back(table: Table) -> None:
    first = table.start()
    table.hand.begin(first)
    table.stopping.set()
    table.let_go.set()
    await table.ends()
    second = first._replace(lease=Lease(first.lease.record, b"u" * 16))
    table.hand.begin(second)
    await table.settled()
    assert (table.begun, table.told.handed_back) == ([first.id], [second.lease])
