"""The commands about batches: what they send, what they print, and how they end."""

import json
from pathlib import Path

import pytest

from maitred.cli.app import app
from tests.cli.conftest import Terminal

MANIFEST = "url,local_id\nhttp://example.org/1.zip,one\nhttp://example.org/2.zip,two\n"


@pytest.fixture
def manifest(tmp_path: Path) -> str:
    file = tmp_path / "manifest.csv"
    file.write_text(MANIFEST)
    return str(file)


def opened(served: Terminal) -> str:
    """Submit a batch that jobs can be added to; give its id."""
    return str(served.gets("batch", "submit", "--submitter", "user:7")["id"])


def test_a_manifest_is_submitted_from_a_file_with_every_option(served: Terminal, manifest: str) -> None:
    batch = served.gets(
        *("batch", "submit", manifest, "--submitter", "user:7", "--handler", "grade", "--arg", "n=3"),
        *("--external-id", "x/1", "--type", "ManifestOfContainers", "--profile", "p", "--mode", "update"),
        *("--response-type", "xml", "--response-url", "http://example.org/", "--erc", "who=Ada"),
        *("--priority", "3", "--bulk", "--duration", "5s"),
    )
    assert (batch["outcome"], batch["external_id"]) == ("created", "x/1")
    assert batch["submitter"] == {"type": "user", "id": "7"}
    assert batch["run"] == {"handler": "grade", "args": {"n": 3}}
    assert (batch["payload_filename"], batch["profile_name"]) == ("manifest.csv", "p")
    assert (batch["priority"], batch["bulk"], batch["duration"]) == (3, True, 5.0)
    assert batch["erc"] == {"who": "Ada"}
    again = served.gets(
        "batch", "submit", manifest, "--as", "user:7", "--handler", "g", "--external-id", "x/1"
    )
    assert (again["outcome"], again["id"]) == ("known", batch["id"])


def test_a_batch_that_seals_itself_does_not_ask_for_jobs(served: Terminal, manifest: str) -> None:
    told = served.tells("batch", "submit", manifest, "--handler", "grade")
    assert "outcome created" in told
    assert "jobs can be added" not in told


def test_a_manifest_can_come_from_the_input_or_an_address(served: Terminal) -> None:
    words = ["batch", "submit", "-", "--handler", "grade", "--json", "--data", str(served.data)]
    piped = served.runner.invoke(app, words, input=MANIFEST)
    assert json.loads(piped.stdout)["payload_filename"] is None
    there = served.gets("batch", "submit", "https://example.org/m.checkm", "--handler", "grade")
    assert there["payload_filename"] == "https://example.org/m.checkm"


def test_what_is_wrong_with_a_submission_is_said_in_a_sentence(served: Terminal, tmp_path: Path) -> None:
    missing = served.types("batch", "submit", str(tmp_path / "nothing.csv"), "--handler", "grade")
    assert (missing.exit_code, "cannot be read" in missing.stderr) == (2, True)
    (tmp_path / "bytes").write_bytes(b"\xff")
    assert "is not text in UTF-8" in served.types("batch", "submit", str(tmp_path / "bytes")).stderr
    (tmp_path / "jobs").write_text('{"key": "a"}\n{oops\n')
    wrong = served.types("batch", "submit", "--jobs", str(tmp_path / "jobs"))
    assert (wrong.exit_code, "line 2 of" in wrong.stderr) == (2, True)
    refused = served.types("batch", "submit", "--priority", "105", "--submitter", "user:7")
    assert (refused.exit_code, "priority must be a whole number from 0 to 99" in refused.stderr) == (1, True)
    taken = opened(served)
    assert taken
    nobody = served.types("batch", "show", "bid0000009999")
    assert (nobody.exit_code, "has no batch 'bid0000009999'" in nobody.stderr) == (4, True)


def test_jobs_are_added_to_an_open_batch_until_it_is_sealed(served: Terminal, tmp_path: Path) -> None:
    bid = opened(served)
    job = {"key": "a", "submitter": {"type": "user", "id": "1"}, "run": {"handler": "grade"}}
    (tmp_path / "jobs.json").write_text(json.dumps([job, {**job, "key": "b"}]))
    (tmp_path / "more.jsonl").write_text(json.dumps(job) + "\n\n" + json.dumps({**job, "priority": 500}))
    added = served.types("batch", "add", bid, str(tmp_path / "jobs.json"))
    assert (added.exit_code, added.stdout) == (0, f"{bid}: 2 created.\n")
    more = served.types("batch", "add", bid, str(tmp_path / "more.jsonl"))
    assert (more.exit_code, more.stdout) == (1, f"{bid}: 1 known, 1 refused.\n")
    assert "job 2: " in more.stderr
    assert "priority must be a whole number" in more.stderr
    as_json = served.types("batch", "add", bid, str(tmp_path / "more.jsonl"), "--json")
    known, wrong = json.loads(as_json.stdout)["items"]
    assert (known["outcome"], wrong["type"]) == ("known", "urn:maitred:problem:invalid")
    assert "jobs 2 pending" in served.tells("batch", "seal", bid)
    late = served.types("batch", "add", bid, str(tmp_path / "jobs.json"))
    assert (late.exit_code, "is sealed" in late.stderr) == (5, True)


def test_batches_are_shown_listed_held_and_resumed(served: Terminal) -> None:
    first, second = opened(served), opened(served)
    held = served.tells("batch", "hold", first, "--reason", "wrong files")
    assert "held by admin (wrong files)" in held
    assert [item["id"] for item in served.gets("batch", "list")["items"]] == [second, first]
    assert [item["id"] for item in served.gets("batch", "list", "--state", "held")["items"]] == [first]
    table = served.types("batch", "list", "-n", "1").stdout
    assert second in table
    assert "and 1 more" in table
    assert served.gets("batch", "resume", first)["state"] == "pending"
    assert served.types("batch", "resume", first).exit_code == 5
    assert served.types("batch", "list", "--external-id", "no").stdout == "There is no such batch.\n"
    assert "open: jobs can be added" in served.types("batch", "show", second).stdout


def test_an_empty_batch_completes_is_reported_and_deleted(served: Terminal) -> None:
    bid = opened(served)
    early = served.types("batch", "report", bid)
    assert (early.exit_code, "no report yet" in early.stderr) == (4, True)
    served.gets("batch", "seal", bid)
    watched = served.types("batch", "watch", bid)
    assert (watched.exit_code, watched.stdout) == (0, f"{bid} is completed: none.\n")
    assert "state completed completed 0 failed 0" in served.tells("batch", "report", bid)
    assert served.gets("batch", "report", bid)["completed"] == []
    assert served.gets("batch", "retry", bid) == {"retried": 0}
    assert served.types("batch", "update-report", bid).exit_code == 5
    lines = [json.loads(line) for line in served.types("batch", "watch", bid, "--json").stdout.splitlines()]
    assert [event["event"] for event in lines] == ["state", "report"]
    assert served.types("batch", "rm", bid).stdout == f"Deleted {bid}.\n"
    assert served.types("batch", "rm", bid).exit_code == 4
    assert served.types("batch", "watch", bid).exit_code == 4
