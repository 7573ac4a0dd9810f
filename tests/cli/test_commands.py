"""What holds for every command: it can be had as JSON, its help has examples, and each call has a command."""

import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
import typer

import maitred
from maitred.cli.app import app
from maitred.cli.command import Commands
from maitred.http.access import RULES
from tests.cli.conftest import Terminal

# A terminal and a shell's own code are for nobody to parse.
NOT_JSON = {"shell", "completion"}
PROGRAM: Any = typer.main.get_command(app)


def walk(command: Any, *names: str) -> Iterator[tuple[str, Any]]:
    """Give each command below, with all the words that call it."""
    for name, below in getattr(command, "commands", {}).items():
        yield from walk(below, *names, name)
    if not hasattr(command, "commands"):
        yield " ".join(names), command


COMMANDS = dict(walk(PROGRAM))
each_command = pytest.mark.parametrize("name", COMMANDS)


def examples(command: Any) -> list[list[str]]:
    """Give the words of each call of `maitred` in the examples of a command's help."""
    lines = [line for line in (command.epilog or "").split("\n\n") if "maitred " in line]
    calls = [re.search(r"\bmaitred ([^|>)&]*)", line) for line in lines]
    return [shlex.split(call[1]) for call in calls if call]


def parse(words: list[str]) -> str:
    """Parse what is typed as far as a command is found and has all that it takes; give its name."""
    command, names, context = PROGRAM, list[str](), None
    while hasattr(command, "commands"):
        context = command.make_context(names[-1] if names else "maitred", list(words), parent=context)
        name, command, words = command.resolve_command(context, [*context._protected_args, *context.args])
        names.append(name)
    command.make_context(names[-1], list(words), parent=context)
    return " ".join(names)


@each_command
def test_every_commands_help_has_examples_that_parse(name: str) -> None:
    shown = examples(COMMANDS[name])
    assert shown, "its help has no example"
    assert {parse(words) for words in shown} == {name}


@each_command
def test_every_command_and_option_says_what_it_is(name: str) -> None:
    command = COMMANDS[name]
    assert command.help
    assert [each.name for each in command.params if not each.help] == []


@each_command
def test_every_command_can_answer_in_json(name: str) -> None:
    options = {option for each in COMMANDS[name].params for option in each.opts}
    assert ("--json" in options) != (name in NOT_JSON)


def test_the_version_is_told(terminal: Terminal) -> None:
    assert terminal.runner.invoke(app, ["--version"]).stdout == f"maitred {maitred.__version__}\n"


# Each call of HTTP.md, without its `/api/v1/queues/{queue}`, and the command that makes it.
CALLS = {
    "GET /api/v1/queues": "queues",
    "GET ": "line",
    "GET /line": "line",
    "GET /running": "running",
    "GET /workers": "workers",
    "GET /submitters/{type}/{id}": "submitter",
    "POST /pause": "pause",
    "POST /resume": "resume",
    "POST /check": "check",
    "POST /reconcile": "reconcile",
    "POST /submitters/{type}/{id}/hold": "hold",
    "POST /submitters/{type}/{id}/resume": "resume",
    "POST /profiles/{name}/hold": "hold",
    "POST /profiles/{name}/resume": "resume",
    "WS /interactive": "shell",
    "PUT /jobs": "submit",
    "POST /jobs/many": "submit-many",
    "GET /jobs": "jobs",
    "GET /jobs/{id}": "show",
    "GET /jobs/{id}/deliveries": "deliveries",
    "GET /jobs/{id}/events": "watch",
    "GET /jobs/{id}/output": "output",
    "GET /jobs/{id}/artifacts/{name}": "artifact",
    "DELETE /jobs/{id}": "rm",
    "POST /jobs/{id}/cancel": "cancel",
    "POST /jobs/{id}/duration": "shorten",
    "POST /jobs/{id}/release": "release",
    "POST /jobs/{id}/delay": "delay",
    "POST /jobs/{id}/priority": "priority",
    "POST /jobs/{id}/retry": "retry",
    "POST /jobs/{id}/hold": "hold",
    "POST /jobs/{id}/resume": "resume",
    "POST /batches": "batch submit",
    "GET /batches": "batch list",
    "GET /batches/{bid}": "batch show",
    "GET /batches/{bid}/report": "batch report",
    "GET /batches/{bid}/events": "batch watch",
    "POST /batches/{bid}/jobs": "batch add",
    "POST /batches/{bid}/seal": "batch seal",
    "DELETE /batches/{bid}": "batch rm",
    "POST /batches/{bid}/hold": "batch hold",
    "POST /batches/{bid}/resume": "batch resume",
    "POST /batches/{bid}/retry": "batch retry",
    "POST /batches/{bid}/update-report": "batch update-report",
    "GET /api/v1/keys": "keys list",
    "POST /api/v1/keys": "keys create",
    "DELETE /api/v1/keys/{id}": "keys revoke",
    "POST /api/v1/keys/{id}/rotate": "keys rotate",
    "GET /api/v1/audit": "audit",
    "GET /api/v1/events": "events",
    "GET /readyz": "health",
}
# For probes and scrapers.
NO_COMMAND = {"GET /healthz", "GET /metrics"}


def test_every_call_has_a_command() -> None:
    routes = {route.replace("/api/v1/queues/{queue}", "") for route in RULES}
    assert routes - NO_COMMAND == set(CALLS)
    assert set(CALLS.values()) <= set(COMMANDS)


@pytest.mark.parametrize(
    ("trouble", "code"), [(KeyboardInterrupt, 130), (BrokenPipeError, 141)], ids=["ctrl-c", "nobody reads"]
)
def test_a_command_that_is_broken_off_ends_without_a_word(
    terminal: Terminal, trouble: type[BaseException], code: int
) -> None:
    broken = Commands()

    @broken.add("maitred broken")
    def breaks(often: int = 1) -> None:
        raise trouble(often)

    ended = terminal.runner.invoke(broken, [])
    assert (ended.exit_code, ended.output) == (code, "")
