"""`maitred watch`: a job's place, its run and its output, as lines, as JSON and on a terminal."""

import io
import json
import signal
from datetime import timedelta
from typing import Any

import pytest
from rich.console import Console

from maitred.cli.spans import span, starts
from maitred.cli.watching import Sight, harmless
from maitred.client import Client
from maitred.wire import Estimate, JobDocument
from maitred.wire.document import _FIRST
from tests.cli.conftest import Terminal
from tests.cli.house import TRUSTING, House
from tests.cli.test_waiting import said

WHEN = JobDocument.model_validate(_FIRST).created_at


def job(**facts: Any) -> JobDocument:
    return JobDocument.model_validate({**_FIRST, **facts})


def drawn(sight: Sight) -> list[str]:
    console = Console(file=io.StringIO(), width=80)
    with console.capture() as shown:
        console.print(sight)
    return shown.get().splitlines()


def until_told(house: House) -> tuple[str, ...]:
    """Give a program that prints on both outputs once a file is there."""
    return (
        *("sh", "-c"),
        f"while [ ! -e '{house.home}/told' ]; do sleep 0.05; done; echo out; echo err >&2; exit 7",
    )


async def test_a_job_is_watched_in_lines_where_there_is_no_terminal(house: House) -> None:
    up, address = house.comes_up("up", "--port", "0", "--slots", "1", **TRUSTING)
    async with Client(address) as client:
        await client.pause("default", "lunch")
        submitter = {"type": "user", "id": "1"}
        run = {"command": list(until_told(house))}
        id = (await client.put("default", {"key": "k", "submitter": submitter, "run": run})).id
        watching = house.starts("watch", id)
        assert said(watching).startswith(f"{id} is number 1 in line: the queue is paused by admin: lunch")
        await client.resume("default")
        while not (line := said(watching)).startswith(f"{id} runs, up to "):
            assert line.startswith(f"{id} is number 1 in line"), line
    (house.home / "told").touch()
    shown, told = watching.communicate(timeout=30)
    assert (watching.returncode, shown) == (7, "out\n")
    assert told == f"err\nmaitred: {id} failed (exit): it ended with exit status 7\n"
    again = house.starts("watch", id)
    assert again.communicate(timeout=30) == (shown, told), "a job that has ended is told at once"
    assert again.returncode == 7
    house.stops(up)


async def test_each_event_is_a_line_of_json(house: House) -> None:
    up, address = house.comes_up("up", "--port", "0", "--slots", "1", "--app", "app")
    async with Client(address) as client:
        await client.pause("default")
        run = {"handler": "double", "args": {"n": 21}}
        sent = {"key": "k", "submitter": {"type": "user", "id": "1"}, "run": run}
        id = (await client.put("default", sent)).id
        watching = house.starts("watch", "--json", id)
        assert watching.stdout
        first, place = (json.loads(watching.stdout.readline()) for _ in range(2))
        assert (first["event"], first["phase"], bool(first["id"])) == ("state", "waiting", True)
        assert (place["event"], place["position"], "id" in place) == ("place", 1, False)
        await client.resume("default")
    shown, told = watching.communicate(timeout=30)
    events = [json.loads(line) for line in shown.splitlines()]
    assert (watching.returncode, told) == (0, "")
    assert [event["state"] for event in events if event["event"] == "state"] == ["processing", "completed"]
    assert (events[-1]["event"], events[-1]["result"]) == ("result", {"twice": 42})
    handler = house.starts("watch", id)
    assert handler.communicate(timeout=30) == ('{"twice": 42}\n', ""), "a handler's result is JSON"
    house.stops(up)


async def test_ctrl_c_ends_the_watch_leaves_the_job_and_says_how_to_come_back(house: House) -> None:
    up, address = house.comes_up("up", "--port", "0", "--slots", "0")
    submitted = house.starts("submit", "--json", "--", "true")
    id = json.loads(submitted.communicate(timeout=30)[0])["id"]
    watching = house.starts("watch", id)
    said(watching)
    watching.send_signal(signal.SIGINT)
    way_back = f"`maitred watch {id}` looks on again, `maitred cancel {id}` ends it"
    assert watching.communicate(timeout=30) == ("", f"maitred: {id} stays in line; {way_back}.\n")
    assert watching.returncode == 130
    async with Client(address) as client:
        assert (await client.job("default", id)).phase == "waiting"
    house.stops(up)


async def test_a_server_that_is_started_again_is_found_again(house: House) -> None:
    up, address = house.comes_up("up", "--port", "0", "--slots", "0")
    submitted = house.starts("submit", "--json", "--", "true")
    id = json.loads(submitted.communicate(timeout=30)[0])["id"]
    watching = house.starts("watch", id)
    said(watching)
    house.stops(up)
    up, _ = house.comes_up("up", "--port", address.rpartition(":")[2], "--slots", "0")
    async with Client(address) as client:
        await client.cancel("default", id, "enough")
    shown, told = watching.communicate(timeout=50)
    assert (watching.returncode, shown) == (1, "")
    assert told.endswith(f"maitred: {id} failed (cancelled): cancelled by admin: enough\n")
    house.stops(up)


async def test_a_watched_job_that_is_deleted_is_not_found(house: House) -> None:
    up, address = house.comes_up("up", "--port", "0", "--slots", "0")
    for words in ((), ("--json",)):
        submitted = house.starts("submit", "--json", "--", "true")
        id = json.loads(submitted.communicate(timeout=30)[0])["id"]
        watching = house.starts("watch", id, *words)
        stream = watching.stdout if words else watching.stderr
        assert stream
        stream.readline()
        async with Client(address) as client:
            await client.remove("default", id)
        _, told = watching.communicate(timeout=30)
        assert watching.returncode == 4
        assert told.endswith(f"maitred: queue 'default' has no job '{id}'\n")
    house.stops(up)


async def test_on_a_terminal_the_display_is_drawn_and_taken_away(house: House) -> None:
    up, address = house.comes_up("up", "--port", "0", "--slots", "1", **TRUSTING)
    async with Client(address) as client:
        await client.pause("default", "lunch")
        run = {"command": list(until_told(house))}
        sent = {"key": "essay", "submitter": {"type": "user", "id": "1"}, "run": run}
        id = (await client.put("default", sent)).id
        watching, screen = house.shows("watch", id, only_errors=True)
        screen.until("number 1 in line.*paused by admin: lunch")
        await client.resume("default")
        screen.until("running")
    (house.home / "told").touch()
    ending = screen.until("exit status 7\r\n")
    assert "\x1b[2K" in ending, "what was drawn is taken away"
    shown, _ = watching.communicate(timeout=30)
    assert (watching.returncode, shown) == (7, "out\n")
    screen.close()
    house.stops(up)


def test_an_unknown_job_is_a_sentence(served: Terminal) -> None:
    for words in (("watch", "nobody"), ("watch", "--json", "nobody")):
        result = served.types(*words)
        assert (result.exit_code, result.stdout) == (4, "")
        assert result.stderr == "maitred: queue 'default' has no job 'nobody'\n"


def test_a_waiting_job_is_drawn_with_its_place_its_reason_and_its_estimate() -> None:
    estimate = Estimate(
        expected=WHEN + timedelta(seconds=40),
        low=WHEN + timedelta(seconds=20),
        high=WHEN + timedelta(seconds=90),
        at_latest=WHEN + timedelta(minutes=5),
        as_of=WHEN,
    )
    waiting = job(key="[red]\x1bessay", position=3).model_copy(update={"estimate": estimate})
    headline, place, bar, expected = drawn(Sight(waiting, WHEN))
    assert headline.startswith("[red]�essay  grading, user:ada, ")
    assert place == "number 3 in line: all slots are busy"
    assert set(bar.strip()) <= {"━", "─"}
    assert expected == "expected to start in 40 s (20 s to 90 s), at the latest in 5 min"


def test_a_running_job_is_drawn_with_its_time_by_the_servers_clock() -> None:
    start = {"stage": "processing", "version": 1, "attempt": 2, "worker": "w", "start": WHEN, "end": None}
    running = job(phase="running", attempt=2, worker="w", duration=40.0, timeline=[{**start, "code": None}])
    _, place, bar, time = drawn(Sight(running, WHEN + timedelta(seconds=10)))
    assert place == "running on w, attempt 2"
    assert bar.strip() == "━" * 10 + "─" * 30
    assert time == "10 s of 40 s"


def test_a_bar_is_ascii_where_the_terminal_is() -> None:
    start = {"stage": "processing", "version": 1, "attempt": 1, "worker": "w", "start": WHEN, "end": None}
    running = job(phase="running", attempt=1, worker="w", duration=40.0, timeline=[{**start, "code": None}])
    output = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    Console(file=output, width=80).print(Sight(running, WHEN + timedelta(seconds=10)))
    output.seek(0)
    assert "#" * 10 + "-" * 30 in output.read()


def test_nothing_is_said_of_a_start_that_nobody_can_foresee() -> None:
    assert starts(None) is None
    assert starts(Estimate(as_of=WHEN)) is None
    overdue = Estimate(as_of=WHEN, expected=WHEN + timedelta(seconds=3))
    assert starts(overdue, passed=4.0) == "expected to start any moment"
    assert "cannot be said" in drawn(Sight(job(position=1), WHEN))[-1]


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-1, "0.0 s"),
        (0.44, "0.4 s"),
        (1, "1 s"),
        (119, "119 s"),
        (150, "2 min"),
        (7500, "2 h 5 min"),
        (7200, "2 h"),
        (3 * 86400, "3 days"),
    ],
)
def test_lengths_of_time_are_said_as_people_do(seconds: float, shown: str) -> None:
    assert span(seconds) == shown


def test_what_a_program_prints_can_colour_a_terminal_and_nothing_more() -> None:
    assert harmless("a\tb\r\n\x1b[1;32mgreen\x1b[0m ü") == "a\tb\r\n\x1b[1;32mgreen\x1b[0m ü"
    assert harmless("\x1b[2J\x1b]0;title\x07\x00\x9b1A") == "�[2J�]0;title���1A"


def test_a_held_job_says_who_holds_it_and_why() -> None:
    hold = {"kind": "job", "name": "x", "by": "ann", "reason": "no [disk]\x1b", "at": WHEN}
    held = Sight(job(state="held", phase=None, position=None, holds=[hold]), WHEN)
    assert held.line() == f"{held.job.id} is held: job x held by ann (no [disk]\x1b)."
    assert drawn(held)[1].strip() == "held: job x held by ann (no [disk]\ufffd)"
