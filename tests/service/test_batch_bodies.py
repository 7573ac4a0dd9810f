"""The body of a batch: every fault at once, each with its path; what is right is kept as it was sent."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maitred.core.classes import DurationClass, Limit
from maitred.core.settings import SECOND, Settings
from maitred.core.stages import INGEST
from maitred.errors import InvalidJob
from maitred.service.order import allowed_by
from maitred.wire import BatchBody, parse_batch

PLAIN = allowed_by(Settings())
STAGED = allowed_by(Settings(stages=INGEST, profiles=("merritt", "demo")))
ADA = {"type": "user", "id": "ada"}


def job(key: str = "a", **more: Any) -> dict[str, Any]:
    return {"key": key, "submitter": ADA, "run": {"handler": "grade"}, **more}


def faults(value: object, allowed: Any = PLAIN) -> dict[str, str]:
    with pytest.raises(InvalidJob) as caught:
        parse_batch(value, allowed)
    found = {fault.path: fault.message for fault in caught.value.faults}
    assert len(found) == len(caught.value.faults), "a path is told of once"
    return found


@pytest.mark.parametrize(
    ("path", "sent"),
    [
        ("submitter", {"submitter": None}),
        ("submitter.id", {"submitter": {"type": "user"}}),
        ("external_id", {"external_id": ""}),
        ("external_id", {"external_id": "x" * 257}),
        ("profile_name", {"profile_name": 7}),
        ("manifest_type", {"manifest_type": "zip"}),
        ("manifest_type", {"manifest_type": 7}),
        ("response_type", {"response_type": "yaml"}),
        ("submission_mode", {"submission_mode": "replace"}),
        ("payload", {"payload": 7}),
        ("payload", {"payload": "\ud800"}),
        ("payload", {"payload": "a\n", "manifest_type": "Single File", "run": {"handler": "x"}}),
        ("payload_filename", {"payload_filename": "here.csv"}),
        ("payload_filename", {"payload_filename": "http://"}),
        ("jobs", {"jobs": {}}),
        ("jobs.0", {"jobs": ["a"]}),
        ("jobs", {"jobs": [], "payload": "a\n", "run": {"handler": "x"}}),
        ("jobs", {"jobs": [], "payload_filename": "http://a/", "run": {"handler": "x"}}),
        ("erc", {"erc": "me"}),
        ("erc.who", {"erc": {"who": 7}}),
        ("erc.why", {"erc": {"why": ""}}),
        ("response_url", {"response_url": "ftp://a/"}),
        ("run", {"run": "grade"}),
        ("run.command", {"run": {"command": ["ls"]}}),
        ("run.handler", {"run": {"handler": "9"}}),
        ("run.args", {"run": {"args": []}}),
        ("run", {"payload": "a\n"}),
        ("run.handler", {"payload": "a\n", "run": {"args": {}}}),
        ("priority", {"priority": 105}),
        ("priority", {"priority": -1}),
        ("bulk", {"bulk": 1}),
        ("class", {"class": "huge"}),
        ("duration", {"duration": 601}),
        ("duration", {"class": "default", "duration": 1}),
        ("seal", {"seal": "no"}),
        ("seel", {"seel": False}),
        ("class_", {"class_": "default"}),
        ("jobs.0.batch", {"jobs": [job(batch="bid0")]}),
    ],
)
def test_one_fault_is_one_entry_with_its_path(path: str, sent: dict[str, Any]) -> None:
    found = faults({"submitter": ADA, **sent})
    assert list(found) == [path]
    assert found[path]


def test_faults_of_jobs_have_their_number_beside_those_of_the_batch() -> None:
    sent = {
        "priority": 105,
        "jobs": [job("ok"), job(""), job("b", run={"handler": "grade", "args": 7}), job("c", delay=-1, x=1)],
    }
    assert list(faults(sent)) == [
        "submitter",
        "priority",
        "jobs.1.key",
        "jobs.2.run.args",
        "jobs.3.delay",
        "jobs.3.x",
    ]


def test_faults_are_bounded() -> None:
    assert len(faults({"submitter": ADA, "jobs": [job("")] * 1000})) == 100


def test_what_a_job_does_not_say_its_batch_says() -> None:
    body = parse_batch(
        {
            "submitter": ADA,
            "profile_name": "p",
            "priority": 7,
            "bulk": True,
            "class": "slow",
            "run": {"handler": "grade"},
            "jobs": [{"key": "a"}, job("b", priority=3, duration=1, bulk=False), job("c", immediate=True)],
        },
        allowed_by(
            Settings(classes=(DurationClass("fast", SECOND), DurationClass("slow", 9 * SECOND, Limit(1))))
        ),
    )
    assert body.job(0) == {
        "key": "a",
        "submitter": ADA,
        "profile_name": "p",
        "priority": 7,
        "bulk": True,
        "class": "slow",
        "run": {"handler": "grade"},
    }
    second = {**body.job(0), "key": "b", "priority": 3, "duration": 1, "bulk": False}
    del second["class"]
    assert body.job(1) == second
    assert "bulk" not in body.job(2)


def test_an_unknown_profile_is_a_fault_that_names_the_known_ones() -> None:
    assert faults({"submitter": ADA, "profile_name": "x"}, STAGED) == {
        "profile_name": "must be one of merritt, demo"
    }
    jobs = [{"key": "a", "run": {"args": {}}, "profile_name": "x"}]
    assert faults({"submitter": ADA, "jobs": jobs}, STAGED) == {
        "jobs.0.profile_name": "must be one of merritt, demo"
    }
    assert parse_batch({"submitter": ADA, "profile_name": "demo"}, STAGED).profile_name == "demo"


def test_a_queue_with_stages_takes_arguments_alone() -> None:
    assert parse_batch({"submitter": ADA, "payload": "a\n1\n"}, STAGED).run is None
    assert parse_batch({"submitter": ADA, "payload": "a\n1\n", "run": {"args": {"x": 1}}}, STAGED).run
    assert list(faults({"submitter": ADA, "payload": "a\n", "run": {"handler": "x"}}, STAGED)) == [
        "run.handler"
    ]


@pytest.mark.parametrize(
    "spelling",
    ["Manifest of Containers", "ManifestOfContainers", "manifest-of-containers", "MANIFEST_OF_CONTAINERS"],
)
def test_types_are_told_apart_without_case_and_separators(spelling: str) -> None:
    body = parse_batch({"submitter": ADA, "manifest_type": spelling, "response_type": "Turtle"}, PLAIN)
    assert (body.manifest_type, body.response_type) == ("manifest-of-containers", "turtle")


def test_a_batch_may_have_any_one_source_or_none() -> None:
    run = {"run": {"handler": "x"}}
    sources: list[dict[str, Any]] = [
        {},
        {"seal": False},
        {"jobs": []},
        {"payload": "a\n1\n", **run},
        {"payload": "a\n1\n", "payload_filename": "plain name.csv", **run},
        {"payload_filename": "http://a.org/m.checkm", **run},
        {"payload_filename": "http://a.org/f.bin", "manifest_type": "single-file", **run},
    ]
    for source in sources:
        body = parse_batch({"submitter": ADA, **source}, PLAIN)
        assert body.expanding == bool("payload" in source or "payload_filename" in source)
        assert parse_batch(body, PLAIN) == body
    assert parse_batch({"submitter": ADA, "jobs": [job()]}, PLAIN).expanding


ANY = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
FIELDS = st.sampled_from([*BatchBody.model_fields, "class", "x"])


@given(st.dictionaries(FIELDS, ANY | st.just(ADA) | st.just([job()]) | st.just([{}, 7])) | ANY)
def test_anything_is_a_batch_or_a_list_of_faults(value: object) -> None:
    try:
        parse_batch(value, PLAIN)
    except InvalidJob as error:
        found = error.faults
    else:
        return
    assert found
    assert all(fault.message for fault in found)
