"""`maitred batch watch`: a bar for each state, lines where there is no terminal, and its end as exit code."""

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from maitred.cli import batch_watching
from maitred.cli.batch_watching import BatchSight
from maitred.wire import BatchDocument, BatchReportEvent, BatchStateEvent
from tests.cli.conftest import Terminal
from tests.cli.house import House

DOCUMENT: dict[str, Any] = {
    "id": "bid0000000001",
    "queue": "default",
    "external_id": "regrade",
    "state": "processing",
    "sealed": True,
    "counts": {"pending": 2, "held": 0, "processing": 1, "failed": 1, "completed": 4, "deleted": 0},
    "created_at": "2026-11-15T20:55:00.000000Z",
    "modified_at": "2026-11-15T20:55:00.000000Z",
    "submitter": {"type": "user", "id": "ada"},
}


def sight(**facts: Any) -> BatchSight:
    return BatchSight(BatchDocument.model_validate({**DOCUMENT, **facts}))


def drawn(seen: BatchSight) -> list[str]:
    console = Console(file=io.StringIO(), width=80)
    with console.capture() as shown:
        console.print(seen)
    return shown.get().splitlines()


def test_there_is_a_bar_for_each_state_that_jobs_are_in() -> None:
    head, *bars, total = drawn(sight())
    assert head.split() == ["bid0000000001", "regrade", "default,", "processing"]
    assert [bar.split()[:2] for bar in bars] == [
        ["pending", "2"],
        ["processing", "1"],
        ["completed", "4"],
        ["failed", "1"],
    ]
    assert bars[2].count("━") == 2 * bars[0].count("━")
    assert total.strip() == "8 jobs"


def test_an_open_batch_says_that_more_may_come_and_no_name_moves_the_cursor() -> None:
    head, *_, total = drawn(sight(sealed=False, external_id="\x1b[2J[red]"))
    assert "\x1b" not in head
    assert "[red]" in head
    assert total.strip() == "8 jobs, more may come"


def test_what_is_heard_changes_what_is_seen() -> None:
    seen = sight()
    seen.see(BatchStateEvent(state="reporting", sealed=True, counts={"completed": 8}))
    assert seen.line() == "bid0000000001 is reporting: 8 completed."
    report = {**dict.fromkeys(("failed", "deleted"), 0), "completed": 8, "sequence": 1, "kind": "report"}
    seen.see(BatchReportEvent.model_validate({**report, "at": DOCUMENT["created_at"], "state": "completed"}))
    assert seen.line() == "bid0000000001 is completed: 8 completed."


def test_a_batch_is_watched_to_its_end_in_lines_and_on_a_terminal(house: House, tmp_path: Path) -> None:
    (tmp_path / "good.csv").write_text("url,n\nhttp://example.org/1,1\nhttp://example.org/2,2\n")
    (tmp_path / "rows.py").write_text(
        "import maitred\n"
        'q = maitred.Queue("default")\n\n'
        '@q.handler("take")\n'
        "def take(**columns):\n"
        '    if columns.get("fail"):\n'
        '        raise RuntimeError("no such row")\n'
    )
    up, _ = house.comes_up("up", "--port", "0", "--slots", "1", "--app", "rows")
    submit = ("batch", "submit", "good.csv", "--submitter", "user:7", "--handler", "take", "--json")
    first = BatchDocument.model_validate_json(house.says(*submit)).id
    watching = house.starts("batch", "watch", first)
    shown, _ = watching.communicate(timeout=30)
    assert (watching.returncode, shown) == (0, f"{first} is completed: 2 completed.\n")
    second = BatchDocument.model_validate_json(house.says(*submit, "--arg", "fail=true")).id
    failing, screen = house.shows("batch", "watch", second, only_errors=True)
    shown, _ = failing.communicate(timeout=30)
    screen.close()
    assert (failing.returncode, shown) == (1, f"{second} is failed: 2 failed.\n")
    report = house.says("batch", "report", second)
    assert "no such row" in report
    house.stops(up)


def test_ctrl_c_leaves_the_batch_and_says_how_to_come_back(
    served: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    bid = served.gets("batch", "submit", "--open")["id"]

    def leave(_line: str, *, err: bool) -> None:
        assert err
        raise KeyboardInterrupt

    monkeypatch.setattr(batch_watching, "say", leave)
    left = served.types("batch", "watch", bid)
    assert left.exit_code == 130
    assert left.stderr == f"maitred: {bid} goes on; `maitred batch watch {bid}` looks on again.\n"
