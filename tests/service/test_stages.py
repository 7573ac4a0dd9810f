"""Queues with stages as servers see them: what is foreseen, and what watchers of a job are told."""

from dataclasses import replace
from typing import Any

import pytest

from maitred.core.estimate import Waiting
from maitred.core.events import Started
from maitred.core.floor import Kind
from maitred.core.job import Job, Phase, Place, Submitter, View
from maitred.core.settings import SECOND, Settings
from maitred.core.stages import INGEST
from maitred.service.lanes import LaneOrders
from maitred.service.watch import Heard, Watch
from tests.service.lookout import Lookout

SERVES = [f"stage:{name}" for name in INGEST]
U1 = Submitter("user", "1")


async def staged_floor(lookout: Lookout, **settings: Any) -> None:
    await lookout.store.configure(Settings(stages=INGEST, **settings))
    await lookout.works(1, SERVES)
    await lookout.heard()


async def test_with_several_stages_a_start_is_expected_but_not_promised(lookout: Lookout) -> None:
    await staged_floor(lookout)
    first = await lookout.submit("a", run={"args": {}})
    second = await lookout.submit("b", run={"args": {}})
    await lookout.starts()
    await lookout.heard()
    quote = await lookout.quote(second)
    assert quote
    assert (quote.expected is None, quote.at_latest) == (False, None)
    assert await lookout.quote(first) is None


async def test_a_stage_that_is_carried_on_is_no_start_without_waiting(lookout: Lookout) -> None:
    await staged_floor(lookout)
    id = await lookout.submit("a", run={"args": {}})
    await lookout.starts()
    for _ in INGEST[:-1]:
        await lookout.ends(id)
    await lookout.heard()
    assert lookout.held[id].need == "stage:notify"
    queue = await lookout.desk.queue(lookout.queue)
    assert queue["waits"]["count"] == 1, "the job has waited once"


@pytest.mark.parametrize(
    ("wants", "blocked"), [({}, False), ({"lacking": True}, True), ({"blocked": True}, True)]
)
def test_a_place_that_waits_for_more_than_the_floor_is_promised_nothing(
    wants: dict[str, bool], blocked: bool
) -> None:
    job = replace(Job(1, "id", 1, U1, "stage:provisioning", b"", 0), **wants)  # type: ignore[arg-type]
    place = Place(job.lane, 0, 1, U1, 1)
    assert Waiting.at(place, elastic=True) == Waiting(need="stage:provisioning", blocked=blocked)
    assert LaneOrders(str(job.lane)).waiting == Waiting(need="stage:provisioning", blocked=blocked)


async def test_watchers_hear_of_each_stage() -> None:
    job = Job(7, "id", 1, U1, "stage:estimating", b'{"key":"k","run":{"args":{}}}', 0)
    waits = View(job, 1, 0, 1, (), SECOND, None, 1, 0)
    watch = Watch(waits, Settings(stages=INGEST), (0, 0))
    for number, name in enumerate(INGEST, 1):
        started = Started(7, 1, 1, 1, Kind.ELASTIC, number * SECOND, 5 * SECOND, "w", f"stage:{name}")
        watch.heard.append(Heard((number, 0), number * SECOND, started))
    watch.tell_heard(len(INGEST), None, watch.settings, ())
    told = [await watch.next(0) for _ in INGEST]
    assert [event and event.data["stage"] for event in told] == list(INGEST)
    assert watch.view.job.phase is Phase.RUNNING
