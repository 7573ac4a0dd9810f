"""The commands that list: jobs, what runs, queues, workers, and what a submitter has."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from maitred.store.memory import MemoryStores
from tests.cli.conftest import Terminal, serving


def test_jobs_are_listed_by_what_they_are(served: Terminal) -> None:
    ada = served.gets("submit", "--as", "user:ada", "--key", "a", "--metadata", "course=logic", "--", "ls")
    bob = served.gets("submit", "--as", "user:bob", "--key", "b", "--", "ls")
    served.gets("cancel", bob["id"])
    assert served.tells("jobs", "--key", "a").split()[6:10] == ["a", "user:ada", "pending", "(waiting)"]
    assert [each["id"] for each in served.gets("jobs", "--state", "failed")["items"]] == [bob["id"]]
    assert [each["id"] for each in served.gets("jobs", "--submitter", "user:ada")["items"]] == [ada["id"]]
    assert served.gets("jobs", "--metadata", "course=logic")["total"] == 1
    assert served.tells("jobs", "--metadata", "course=music") == "There is no such job."
    assert "and 1 more" in served.tells("jobs", "--limit", "1")
    first = served.gets("jobs", "--limit", "1")
    second = served.gets("jobs", "--limit", "1", "--cursor", first["next"])
    assert {page["items"][0]["id"] for page in (first, second)} == {ada["id"], bob["id"]}
    assert served.types("jobs", "--state", "lost").exit_code == 1


def test_a_submitter_is_shown_with_its_jobs(served: Terminal) -> None:
    job = served.gets("submit", "--as", "user:ada", "--", "ls")["id"]
    assert served.tells("submitter", "user:ada") == f"user:ada is not held: 1 waiting. {job}"
    assert served.gets("submitter", "user:ada")["jobs"] == [job]
    assert served.types("submitter", "ada").exit_code == 2


def test_queues_are_listed_each_on_a_line(served: Terminal) -> None:
    assert served.types("queues").stdout.splitlines() == [
        "default is open: 0 waiting, 0 running, no slots.",
        "render is open: 0 waiting, 0 running, no slots.",
    ]
    assert served.gets("queues")["items"][1]["classes"][0]["name"] == "fast"


def test_where_nothing_runs_and_nobody_works_that_is_said(served: Terminal) -> None:
    assert served.tells("running") == "Nothing runs."
    assert served.tells("workers") == "Nobody works here; `maitred work` starts a worker."


async def _with_a_worker(stores: MemoryStores) -> None:
    await stores.queue("default").join("the-worker", 1, ["command"])


@pytest.fixture
def staffed(terminal: Terminal) -> Iterator[Terminal]:
    """A terminal beside a server with a worker that takes a job and goes on for ever."""
    yield from serving(terminal, _with_a_worker)


def test_what_runs_is_shown_with_its_time_and_worker(staffed: Terminal) -> None:
    job = staffed.gets("submit", "--key", "a", "--as", "user:ada", "--", "sleep", "9")
    told = staffed.tells("running").split()
    assert (told[6:8], told[-2:]) == (["a", "user:ada"], ["the-worker", job["id"]])
    assert staffed.gets("running")["items"][0]["duration"] == 600.0
    assert staffed.tells("workers").split()[5:11] == ["the-worker", "1", "of", "1", "busy", "command"]


def test_many_jobs_are_submitted_at_once_and_each_refusal_is_told(served: Terminal, tmp_path: Path) -> None:
    bodies = [
        {"key": key, "submitter": {"type": "user", "id": "7"}, "run": {"command": ["ls"]}} for key in "ab"
    ]
    file = tmp_path / "jobs.json"
    file.write_text("\n".join(map(json.dumps, [*bodies, {"key": "c"}])))
    told = served.types("submit-many", str(file))
    assert (told.exit_code, told.stdout) == (1, "default: 2 created, 1 refused.\n")
    assert told.stderr.startswith("job 3: refused: ")
    file.write_text(json.dumps([*bodies, 7]))
    assert "item 3 of" in served.types("submit-many", str(file)).stderr
    file.write_text(json.dumps(bodies))
    assert [each["outcome"] for each in served.gets("submit-many", str(file))["items"]] == [
        "updated",
        "updated",
    ]


def test_rows_are_lines_where_no_terminal_says_how_wide_it_is(
    served: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS")
    served.gets("submit", "--key", "long " * 60, "--", "ls")
    shown = served.types("line").stdout
    assert len(shown.splitlines()) == 3, "the queue, the headings and one row"
    assert "\x1b" not in shown
