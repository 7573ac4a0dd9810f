"""What documents say of a job's class and of a queue's levels, whatever store the facts come from."""

from dataclasses import replace

import pytest

from maitred.core.job import Band, Held, Job, Phase, Run, Submitter, View
from maitred.core.settings import SECOND, Settings
from maitred.core.stages import INGEST
from maitred.service.document import job_document
from maitred.service.house_document import queue_document, running_document
from maitred.store.port import Status, WorkerView
from maitred.wire import JobDocument, QueueDocument, RunningJob
from maitred.wire.house_document import SettingsDocument
from tests.http.floor import THREE

JOB = Job(
    1,
    "id",
    1,
    Submitter("user", "1"),
    "command",
    b'{"key":"k","run":{"command":["ls"]}}',
    0,
    phase=Phase.RUNNING,
)
RUNS = View(
    replace(JOB, stage=1, worker="w"),
    position=None,
    release=None,
    nonce=None,
    running_versions=(1,),
    now=5 * SECOND,
    paused=None,
    serving=1,
    free=0,
    started=SECOND,
)
BUSY = Status(
    settings=THREE,
    now=0,
    counts={},
    jobs=4,
    waiting=0,
    free=0,
    paused=None,
    workers=[WorkerView("w", 4, 4, False, ("command",), 0)],
)


def job(view: View, settings: Settings = THREE) -> JobDocument:
    return JobDocument.model_validate(job_document("q", view, settings))


def test_a_running_job_tells_what_it_was_granted_and_which_class_it_holds() -> None:
    squeezed = replace(RUNS, granted=10 * SECOND, holding=2)
    assert (job(squeezed).class_, job(squeezed).duration) == (None, 10.0)
    running = RunningJob.model_validate(running_document(squeezed, THREE))
    assert (running.class_, running.elastic, running.duration, running.elapsed) == ("medium", True, 10.0, 4.0)


@pytest.mark.parametrize(
    ("asked", "name", "duration"),
    [
        ({"elastic": True}, None, 30.0),
        ({"elastic": True, "duration": 5 * SECOND}, None, 5.0),
        ({"elastic": False, "level": 2}, "medium", 10.0),
        ({"elastic": False, "level": 2, "duration": 5 * SECOND}, "medium", 5.0),
        ({"elastic": False, "level": 9}, None, 30.0),
        ({"elastic": False, "band": Band.INTERACTIVE, "duration": 60 * SECOND}, None, 60.0),
    ],
)
def test_a_job_tells_what_it_asked_for_until_something_else_is_granted(
    asked: dict[str, object], name: str | None, duration: float
) -> None:
    for phase in (Phase.WAITING, Phase.RUNNING, Phase.HELD):
        told = job(replace(RUNS, job=replace(RUNS.job, phase=phase, **asked)))  # type: ignore[arg-type]
        assert (told.class_, told.duration) == (name, duration), phase


def test_what_an_ended_job_had_is_told_where_it_is_known() -> None:
    ended = replace(RUNS.job, phase=Phase.ENDED, elastic=False, level=2, duration=5 * SECOND)
    assert job(replace(RUNS, job=ended)).duration == 5.0
    assert job(replace(RUNS, job=replace(ended, elastic=True))).duration is None
    assert job(replace(RUNS, job=replace(ended, stage=0))).duration is None, "it never started"


def test_of_each_class_those_count_as_running_who_hold_no_longer_one() -> None:
    queue = QueueDocument.model_validate(queue_document("q", replace(BUSY, limits=(4, 2, 1), used=(4, 2, 1))))
    assert [(each.name, each.cap) for each in queue.classes] == [("fast", 3), ("medium", 10), ("slow", 30)]
    assert [(each.limit, each.used, each.running) for each in queue.classes] == [
        (4, 4, 2),
        (2, 2, 1),
        (1, 1, 1),
    ]


def test_a_queue_whose_store_counts_no_units_tells_its_slots_and_its_limits() -> None:
    queue = QueueDocument.model_validate(queue_document("q", BUSY))
    assert [(each.limit, each.used) for each in queue.classes] == [(4, 4), (2, 0), (1, 0)]
    plain = QueueDocument.model_validate(queue_document("q", replace(BUSY, settings=Settings())))
    assert [(each.name, each.cap, each.limit, each.running) for each in plain.classes] == [
        ("default", 600, 4, 4)
    ]


def test_the_settings_of_a_queue_are_typed_and_keep_what_a_reader_does_not_know() -> None:
    settings = QueueDocument.model_validate(queue_document("q", BUSY)).settings
    assert [each.limit for each in settings.classes] == [None, "50%", 1]
    assert settings.interactive
    assert (settings.elastic, settings.interactive.cap) == ("borrow", 3600.0)
    assert settings.model_dump()["lease"] == 3600.0


def test_the_settings_of_a_queue_show_its_stages_and_its_ledger() -> None:
    def shown(settings: Settings) -> SettingsDocument:
        return QueueDocument.model_validate(queue_document("q", replace(BUSY, settings=settings))).settings

    plain = shown(Settings())
    assert (plain.stages, plain.space, plain.profiles) == (["processing"], None, None)
    assert (plain.ledger, plain.layout) == (None, None)
    assert plain.backoff
    assert (plain.backoff.first, plain.backoff.most) == (1.0, 300.0)
    ingest = shown(Settings(stages=INGEST, space=7, profiles=("p",), ledger="zookeeper://a:1/r"))
    assert (ingest.stages, ingest.space, ingest.profiles) == (list(INGEST), 7, ["p"])
    assert (ingest.ledger, ingest.layout) == ("zookeeper://a:1/r", "seed")


INGESTS = Settings(stages=INGEST)


@pytest.mark.parametrize(
    ("at", "state", "stage", "last"),
    [
        ({"stage": 0, "phase": Phase.WAITING}, "pending", None, None),
        ({"stage": 0, "phase": Phase.HELD}, "held", None, None),
        ({"stage": 1, "phase": Phase.RUNNING}, "estimating", "estimating", None),
        ({"stage": 3, "phase": Phase.WAITING}, "downloading", "downloading", "provisioning"),
        ({"stage": 3, "phase": Phase.HELD}, "held", "downloading", "provisioning"),
        ({"stage": 3, "phase": Phase.ENDED, "code": "error"}, "failed", "downloading", "provisioning"),
        ({"stage": 6, "phase": Phase.ENDED}, "completed", "notify", "notify"),
    ],
)
def test_the_last_success_is_the_stage_before_whatever_holds_a_job_up(
    at: dict[str, object], state: str, stage: str | None, last: str | None
) -> None:
    told = job(replace(RUNS, job=replace(JOB, **at)), INGESTS)  # type: ignore[arg-type]
    assert (told.state, told.stage, told.last_successful_status) == (state, stage, last)


def test_what_the_ledger_knows_of_a_job_is_told() -> None:
    known = replace(
        JOB,
        batch="b1",
        profile="p",
        space=7,
        identifiers=b'{"primary_id":"ark:/1","local_id":["a"]}',
        ledger="jid0000000001",
    )
    holds = (Held("submitter", "user.a.b", "ann", "", SECOND), Held("batch", "b1", "ben", "why", SECOND))
    told = job(replace(RUNS, job=known, holds=holds), INGESTS)
    assert (told.batch, told.profile_name, told.space_needed) == ("b1", "p", 7)
    assert (told.identifiers, told.ledger_id) == (
        {"primary_id": "ark:/1", "local_id": ["a"]},
        "jid0000000001",
    )
    assert [(hold.kind, hold.name, hold.by, hold.reason) for hold in told.holds] == [
        ("submitter", "user:a.b", "ann", None),
        ("batch", "b1", "ben", "why"),
    ]
    plain = job(RUNS, INGESTS)
    assert (plain.batch, plain.profile_name, plain.space_needed, plain.ledger_id) == (None,) * 4
    assert (plain.identifiers, plain.holds) == ({}, [])


def test_an_ended_job_of_stages_that_are_no_more_can_still_be_read() -> None:
    old = replace(JOB, phase=Phase.ENDED, stage=6, timeline=[Run(6, 1, 1, "w", 0, SECOND, "")])
    told = job(replace(RUNS, job=old, started=None), Settings())
    assert (told.state, told.stage, told.last_successful_status) == ("completed", None, None)
    assert [entry.stage for entry in told.timeline] == ["stage 6"]
