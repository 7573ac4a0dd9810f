"""What a stage gets and what it may say of its job; a value that is not allowed fails the job, no more."""

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

import maitred
from maitred.core.job import COMMAND, Lease, Start
from maitred.core.settings import Settings
from maitred.core.stages import INGEST
from maitred.errors import ConfigError, Transient
from maitred.service.handlers import Handlers
from maitred.wire.codec import encode_json
from maitred.worker import current_job
from maitred.worker.outcome import MESSAGE_LIMIT, RESULT_LIMIT, Outcome
from maitred.worker.runner import Runner, check_stages
from maitred.worker.stage_job import StageJob
from tests.worker.runs import a_run

STAGED = Settings(stages=INGEST)
Stage = Callable[[StageJob], Any]


def start(need: str = "stage:downloading", data: bytes = b"", identifiers: bytes = b"") -> Start:
    body = encode_json({"key": "k", "run": {"args": {"url": "u"}}, "metadata": {"course": "1"}})
    return Start(Lease(1, b"t" * 16), "id", 2, 3, need, body, 0, 0, data, identifiers)


class Stages:
    """Runs one function as a stage."""

    def __init__(self) -> None:
        self.runner: Runner | None = None

    async def run(self, stage: Stage, given: Start | None = None) -> Outcome:
        handlers = Handlers()
        handlers.register_stage("downloading", stage)
        self.close()
        self.runner = Runner(handlers, STAGED, lambda _: None)
        return await self.runner.run(a_run(given or start()))

    def close(self) -> None:
        if self.runner:
            self.runner.close()


@pytest.fixture
async def stages() -> AsyncIterator[Stages]:
    stages = Stages()
    yield stages
    stages.close()


async def test_a_stage_sees_its_job_and_what_the_stage_before_returned(stages: Stages) -> None:
    seen: list[Any] = []

    async def download(job: StageJob) -> dict[str, int]:
        seen.append((job.id, job.key, job.version, job.attempt, job.stage, job.args, job.metadata))
        seen.append((job.data, job.identifiers, job.priority, job.space_needed, job.message))
        seen.append((current_job().stage, current_job().key))
        return {"size": 7}

    given = start(data=b'{"estimate":5}', identifiers=b'{"primary_id":"ark:/1"}')
    assert await stages.run(download, given) == Outcome("", "", b'{"size":7}')
    assert seen == [
        ("id", "k", 2, 3, "downloading", {"url": "u"}, {"course": "1"}),
        ({"estimate": 5}, {"primary_id": "ark:/1"}, None, None, ""),
        ("downloading", "k"),
    ]


async def test_a_blocking_stage_runs_in_a_thread_and_the_first_one_gets_no_data(stages: Stages) -> None:
    assert await stages.run(lambda job: job.data) == Outcome("", "", b"null")


async def test_what_a_stage_sets_is_told(stages: Stages) -> None:
    def download(job: StageJob) -> None:
        job.priority = 7
        job.space_needed = 3_000_000_000
        job.message = "half of it was there"
        job.identifiers["local_id"] = ["a", "b"]

    outcome = await stages.run(download, start(identifiers=b'{"primary_id":"x"}'))
    assert (outcome.priority, outcome.space, outcome.message) == (7, 3_000_000_000, "half of it was there")
    assert json.loads(outcome.identifiers or b"") == {"primary_id": "x", "local_id": ["a", "b"]}


async def test_what_a_stage_does_not_change_is_left(stages: Stages) -> None:
    outcome = await stages.run(lambda _: None, start(identifiers=b'{"primary_id":"x"}'))
    assert outcome == Outcome("", "", b"null", priority=None, space=None, identifiers=None)
    assert (await stages.run(lambda job: job.identifiers.clear())).identifiers is None
    gone = await stages.run(lambda job: job.identifiers.clear(), start(identifiers=b'{"primary_id":"x"}'))
    assert gone.identifiers == b"{}"


class Mute:
    def __repr__(self) -> str:
        raise ValueError


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("priority", 105, "priority 105 is not allowed; allowed is a whole number from 0 to 99"),
        ("priority", -1, "priority -1 is not allowed; allowed is a whole number from 0 to 99"),
        ("priority", "5", "priority '5' is not allowed;"),
        ("priority", 5.5, "priority 5.5 is not allowed;"),
        ("priority", True, "priority True is not allowed;"),
        ("priority", Mute(), "priority of Mute is not allowed;"),
        (
            "space_needed",
            -5,
            "space_needed -5 is not allowed; allowed is a whole number from 0 to 9007199254",
        ),
        ("space_needed", "x", "space_needed 'x' is not allowed;"),
        ("space_needed", 1 << 60, "space_needed 1152921504606846976 is not allowed;"),
        ("message", 7, "message 7 is not allowed; allowed is text"),
        ("identifiers", None, "identifiers None are not allowed; allowed is an object of texts, or lists of"),
        ("identifiers", {"a": 1}, "identifiers {'a': 1} are not allowed;"),
        ("identifiers", {1: "a"}, "identifiers {1: 'a'} are not allowed;"),
        ("identifiers", {"a": ["b", None]}, "identifiers {'a': ['b', None]} are not allowed;"),
        ("identifiers", {"a": "\ud800"}, "identifiers cannot be written as JSON ("),
        ("identifiers", {"a": "x" * 16_384}, "identifiers have 16392 bytes; at most 16384 are kept"),
    ],
)
async def test_a_value_that_is_not_allowed_fails_the_job_and_says_what_is(
    stages: Stages, name: str, value: object, says: str
) -> None:
    outcome = await stages.run(lambda job: setattr(job, name, value))
    assert (outcome.code, outcome.message[: len(says)]) == ("invalid", says)
    assert (outcome.priority, outcome.space, outcome.identifiers) == (None, None, None)


async def test_all_bad_values_are_told_at_once(stages: Stages) -> None:
    def download(job: StageJob) -> None:
        job.priority, job.space_needed = 105, -5

    assert (await stages.run(download)).message.count("is not allowed") == 2


async def test_a_message_of_ten_megabytes_is_cut_with_a_note(stages: Stages) -> None:
    outcome = await stages.run(lambda job: setattr(job, "message", "x" * 10_000_000))
    assert (outcome.code, len(outcome.message)) == ("", MESSAGE_LIMIT)
    assert outcome.message.endswith("x … (cut: it has 10000000 characters)")

    def broken(_job: StageJob) -> None:
        raise ValueError("y" * 10_000_000)

    failure = await stages.run(broken)
    assert (failure.code, len(failure.message)) == ("error", MESSAGE_LIMIT)
    assert failure.message.endswith("y … (cut: it has 10000012 characters)")


async def test_data_for_the_next_stage_has_the_bounds_of_a_result(stages: Stages) -> None:
    assert (await stages.run(lambda _: object())).code == "result"
    assert (await stages.run(lambda _: "x" * RESULT_LIMIT)).code == "result"


async def test_a_stage_that_fails_keeps_its_reason_and_what_it_said_in_the_right_way(stages: Stages) -> None:
    def download(job: StageJob) -> None:
        job.identifiers["primary_id"] = "ark:/1"
        job.priority = 105
        job.message = "not this"
        raise OSError("no route")

    outcome = await stages.run(download)
    assert (outcome.code, outcome.message, outcome.transient) == ("error", "OSError: no route", False)
    assert (outcome.priority, outcome.identifiers) == (None, b'{"primary_id":"ark:/1"}')


class Busy(Transient):
    """The other side is busy."""


@pytest.mark.parametrize(
    ("error", "transient"),
    [
        (Transient("for now"), True),
        (Busy(), True),
        (ExceptionGroup("all", [Busy(), ExceptionGroup("deep", [Transient()])]), True),
        (ExceptionGroup("some", [Busy(), ValueError()]), False),
        (OSError(), False),
    ],
)
async def test_what_is_raised_as_transient_is_told_as_such(
    stages: Stages, error: Exception, transient: bool
) -> None:
    def download(_job: StageJob) -> None:
        raise error

    outcome = await stages.run(download)
    assert (outcome.code, outcome.transient) == ("error", transient)
    assert await stages.run(lambda _: None) == Outcome("", "", b"null")


async def test_a_handler_may_raise_a_transient_error_too() -> None:
    async def grade() -> None:
        raise Busy

    handlers = Handlers()
    handlers.register("grade", grade)
    runner = Runner(handlers, Settings(), lambda _: None)
    body = encode_json({"key": "k", "run": {"handler": "grade"}})
    outcome = await runner.run(a_run(Start(Lease(1, b"t" * 16), "id", 1, 1, "handler:grade", body, 0, 0)))
    assert outcome == Outcome("error", "Busy: The other side is busy.", transient=True)
    runner.close()


# ---------------------------------------------------------------- registering


def test_a_worker_with_stages_serves_those_and_nothing_else() -> None:
    queue = maitred.Queue("ingest")

    @queue.stage("estimating")
    def estimate(job: StageJob) -> None: ...

    queue.handler("grade")(lambda: None)
    assert Runner(queue.handlers, STAGED, lambda _: None).serves == ["stage:estimating"]
    assert Runner(queue.handlers, Settings(), lambda _: None).serves == [COMMAND, "handler:grade"]
    check_stages(queue.handlers, STAGED, "ingest")


def test_a_stage_has_one_function_and_a_plain_name() -> None:
    handlers = Handlers()
    handlers.register_stage("notify", print)
    handlers.register_stage("notify", print)
    with pytest.raises(ConfigError, match="two functions for the stage 'notify'"):
        handlers.register_stage("notify", repr)
    with pytest.raises(ConfigError, match="'Notify' is not a stage's name; allowed are"):
        handlers.register_stage("Notify", print)


def test_a_function_for_a_stage_that_the_queue_does_not_have_is_refused() -> None:
    handlers = Handlers()
    handlers.register_stage("storing", print)
    with pytest.raises(ConfigError) as refused:
        check_stages(handlers, STAGED, "ingest")
    assert str(refused.value) == f"Queue 'ingest' has no stage 'storing'; its stages are {', '.join(INGEST)}."
    with pytest.raises(ConfigError, match=r"has no stages of its own.*queues\.default\.stages"):
        check_stages(handlers, Settings(), "default")


def test_another_apps_functions_are_added_to_ones_own() -> None:
    first, second = Handlers(), Handlers()
    second.register("grade", print)
    second.register_stage("notify", repr)
    first.add(second)
    assert (dict(first), first.stages) == ({"grade": print}, {"notify": repr})
