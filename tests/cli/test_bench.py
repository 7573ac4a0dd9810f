"""`maitred bench` measures on a house of its own, or on a server that it leaves as it was."""

import json
from pathlib import Path

import pytest

from maitred.cli.app import app
from tests.cli.conftest import Terminal


def test_a_private_house_is_measured_and_nothing_of_it_stays(
    terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    measured = terminal.runner.invoke(app, ["bench", "--jobs", "20", "--json"])
    assert measured.exit_code == 0, measured.output
    figures = json.loads(measured.stdout)
    assert (figures["jobs"], figures["completed"]) == (20, 20)
    assert figures["submit"]["per_second"] > 0
    assert 0 < figures["wait"]["p50"] <= figures["wait"]["p99"]
    assert list(tmp_path.glob("maitred-bench-*")) == []


def test_a_server_where_nothing_runs_is_left_as_it_was(served: Terminal) -> None:
    server = (served.data / "address").read_text()
    asked = ("bench", "--server", server, "--jobs", "3", "--within", "100ms")
    unasked = served.types(*asked)
    assert (unasked.exit_code, "Say --yes" in unasked.stderr) == (2, True)
    gave_up = served.types(*asked, "--yes")
    assert (gave_up.exit_code, "all was deleted" in gave_up.stdout) == (1, True)
    assert "3 jobs go into 'default'" in gave_up.stderr
    assert served.gets("jobs")["items"] == served.gets("batch", "list")["items"] == []
