"""The doctor tells what the host can give, and a worker refuses to start with less than is required."""

import json
import os
from pathlib import Path

import pytest

from tests.cli.conftest import Terminal


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_it_tells_each_thing_in_a_line_and_how_to_get_what_is_lacking(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAITRED_WORKER__ISOLATE", "false")
    result = terminal.types("doctor")
    assert result.exit_code == 0, result.output
    lines = {line.split()[1]: line for line in result.stdout.splitlines()}
    assert lines["network"].startswith("lacking")
    assert "leave out `isolate = false`" in lines["network"]
    assert lines["memory"].startswith("ok")
    assert lines["store"].startswith("lacking")


def test_what_is_required_and_lacking_is_a_failure(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAITRED_WORKER__ISOLATE", "false")
    monkeypatch.setenv("MAITRED_WORKER__REQUIRE", "memory,network")
    result = terminal.types("doctor", "--json")
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert not found["ok"]
    needed = {line["about"]: line["ok"] for line in found["found"] if line["needed"]}
    assert needed == {"memory": True, "network": False}


@pytest.mark.parametrize("command", ["work", "up"])
def test_a_worker_refuses_to_start_with_less(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv("MAITRED_WORKER__ISOLATE", "false")
    result = terminal.types(command, "--require", "network,pids")
    assert result.exit_code == 2
    assert "network: " in result.stderr
    assert "pids: " in result.stderr
    assert "isolate" in result.stderr


def test_what_no_sandbox_enforces_cannot_be_required(terminal: Terminal) -> None:
    result = terminal.types("work", "--require", "netwrok")
    assert result.exit_code == 2
    assert "allowed are network, pids" in result.stderr


def test_a_store_that_does_not_answer_is_a_failure(terminal: Terminal, tmp_path: Path) -> None:
    result = terminal.types("doctor", "--store", f"unix://{tmp_path}/none")
    assert result.exit_code == 1
    assert f"LACKING store{' ' * 8}" in result.stdout or os.fspath(tmp_path) in result.stdout
