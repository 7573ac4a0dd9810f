"""What a body asks of the store: in a queue with stages arguments alone, in others a handler or a program."""

from typing import Any

import pytest

from maitred.core.job import Order
from maitred.core.settings import Settings
from maitred.core.stages import INGEST
from maitred.errors import Fault, InvalidJob
from maitred.service.order import allowed_by, order_of
from maitred.wire import JobBody, StageRun, decode_body

PLAIN = Settings()
STAGED = Settings(stages=INGEST)
SEND_ARGS = Fault(
    "run",
    "this queue has stages (estimating, provisioning, downloading, processing, recording, notify); "
    'send {"args": {…}}',
)
SEND_MORE = Fault(
    "run", 'this queue has no stages; send {"handler": …, "args": {…}}, {"command": […]} or {"script": […]}'
)


def body(run: object) -> dict[str, Any]:
    return {"key": "k", "submitter": {"type": "user", "id": "1"}, "run": run}


def order(run: object, settings: Settings) -> Order:
    return order_of(body(run), settings, allowed_by(settings))


def faults(run: object, settings: Settings) -> list[Fault]:
    with pytest.raises(InvalidJob) as refused:
        order(run, settings)
    return refused.value.faults


def test_a_job_with_stages_needs_a_worker_for_the_first() -> None:
    made = order({"args": {"url": "http://x/"}}, STAGED)
    assert made.need == "stage:estimating"
    assert decode_body(made.body)["run"] == {"args": {"url": "http://x/"}}
    assert order({"args": {}}, Settings(stages=("grading",))).need == "stage:grading"


def test_a_job_without_stages_needs_its_handler_or_a_shell() -> None:
    assert order({"handler": "grade", "args": {"n": 1}}, PLAIN).need == "handler:grade"
    assert order({"command": ["ls"]}, PLAIN).need == "command"


@pytest.mark.parametrize(
    "run", [{"handler": "grade"}, {"command": ["ls"]}, {"script": []}, {}, {"arguments": {}}, "ls", None]
)
def test_in_a_queue_with_stages_anything_else_is_one_fault_that_says_what_to_send(run: object) -> None:
    assert faults(run, STAGED) == [SEND_ARGS]


def test_in_a_queue_without_stages_arguments_alone_are_one_fault_that_says_what_to_send() -> None:
    assert faults({"args": {}}, PLAIN) == [SEND_MORE]


@pytest.mark.parametrize(
    ("run", "path", "message"),
    [
        ({"args": [1]}, "run.args", "must be an object"),
        ({"args": {}, "files": {}}, "run.files", "is not a field that exists here"),
        ({"args": {"a": float("nan")}}, "run.args", "holds float where only JSON's values are allowed"),
    ],
)
def test_a_fault_inside_the_arguments_has_its_path(run: object, path: str, message: str) -> None:
    assert faults(run, STAGED) == [Fault(path, message)]


def test_a_body_that_was_checked_elsewhere_is_checked_for_the_queue_it_goes_to() -> None:
    staged = JobBody.model_validate(body({"args": {}}))
    plain = JobBody.model_validate(body({"command": ["ls"]}))
    assert isinstance(staged.run, StageRun)
    assert order_of(staged, STAGED, allowed_by(STAGED)).need == "stage:estimating"
    for sent, settings, fault in ((staged, PLAIN, SEND_MORE), (plain, STAGED, SEND_ARGS)):
        with pytest.raises(InvalidJob) as refused:
            order_of(sent, settings, allowed_by(settings))
        assert refused.value.faults == [fault]
