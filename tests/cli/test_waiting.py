"""`submit --wait`: it stays until the end, tells the place, and ends as the job did."""

import json
import signal
import subprocess
from typing import Any

import pytest

from maitred.cli.waiting import exit_status
from maitred.cli.watching import print_end
from maitred.client import Client
from maitred.wire import JobDocument
from maitred.wire.document import _FIRST
from tests.cli.house import TRUSTING, House

RESPONSES = {
    "responses": [{"cmd": "a", "status": 0}, {"cmd": "b", "status": 3}, {"condition": {}, "holds": True}]
}


def test_what_the_steps_of_a_script_printed_is_printed_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    steps = [
        {"cmd": "a", "stdout": "1\n", "stderr": "x\n"},
        {"condition": {}, "holds": True},
        {"cmd": "b", "stdout": "2\n"},
    ]
    facts = {"state": "failed", "code": "script", "message": "'b' ended with exit status 3"}
    run = {"script": [{"cmd": "a"}]}
    print_end(JobDocument.model_validate({**_FIRST, **facts, "run": run, "result": {"responses": steps}}))
    printed = capsys.readouterr()
    assert printed.out == "1\n2\n"
    assert printed.err.startswith("x\n")
    assert "failed (script): 'b' ended with exit status 3" in printed.err


def said(process: subprocess.Popen[str]) -> str:
    assert process.stderr
    return process.stderr.readline()


@pytest.mark.parametrize(
    ("run", "facts", "status"),
    [
        ({"command": ["a"]}, {"state": "completed", "result": {"exit": 0}}, 0),
        ({"command": ["a"]}, {"state": "failed", "result": {"exit": 7}}, 7),
        ({"command": ["a"]}, {"state": "failed", "result": {"exit": -9}}, 137),
        ({"command": ["a"]}, {"state": "failed", "code": "time-limit", "result": {"exit": 0}}, 1),
        ({"command": ["a"]}, {"state": "failed", "code": "cancelled"}, 1),
        ({"script": [{"cmd": "a"}]}, {"state": "completed", "result": RESPONSES}, 0),
        ({"script": [{"cmd": "a"}]}, {"state": "failed", "result": RESPONSES}, 3),
        ({"script": [{"cmd": "a"}]}, {"state": "failed", "result": {"responses": []}}, 1),
        ({"handler": "f"}, {"state": "completed", "result": {"exit": 7}}, 0),
        ({"handler": "f"}, {"state": "failed", "result": {"exit": 7}}, 1),
    ],
)
def test_the_exit_status_is_the_programs_or_1(
    run: dict[str, Any], facts: dict[str, Any], status: int
) -> None:
    job = JobDocument.model_validate({**_FIRST, "phase": None, "run": run, **facts})
    assert exit_status(job) == status


async def test_a_job_is_followed_from_its_place_in_line_to_its_result(house: House) -> None:
    up, address = house.comes_up("up", "--port", "0", "--slots", "1", **TRUSTING)
    async with Client(address) as client:
        await client.pause("default", "lunch")
        until_told = f"while [ ! -e '{house.home}/told' ]; do sleep 0.05; done; echo done"
        waiting = house.starts("submit", "--wait", "--as", "user:1", "--", "sh", "-c", until_told)
        assert "is number 1 in line: the queue is paused by admin: lunch." in said(waiting)
        [job] = (await client.line("default")).items
        await client.put(
            "default",
            {
                "key": "k",
                "immediate": True,
                "submitter": {"type": "user", "id": "2"},
                "run": {"command": ["true"]},
            },
        )
        assert said(waiting).startswith(f"{job.id} is number 2 in line")
        await client.resume("default")
    while (line := said(waiting)) != f"{job.id} runs.\n":
        assert line.startswith(f"{job.id} is number 1 in line"), line
    (house.home / "told").touch()
    shown, _ = waiting.communicate(timeout=30)
    assert 'result     {"exit": 0, "stdout": "done\\n", "stderr": ""}' in shown
    assert waiting.returncode == 0
    house.stops(up)


def test_a_failed_job_is_a_failed_command(house: House) -> None:
    up, _ = house.comes_up("up", "--port", "0", "--slots", "1", "--app", "app")
    program = house.starts("submit", "--wait", "--json", "--", "sh", "-c", "echo no; exit 7")
    shown, told = program.communicate(timeout=30)
    assert (program.returncode, told) == (7, "")
    assert json.loads(shown)["result"]["stdout"] == "no\n"
    handler = house.starts("submit", "--wait", "--handler", "double", "--arg", "nobody=1")
    shown, _ = handler.communicate(timeout=30)
    assert (handler.returncode, "failed" in shown) == (1, True)
    house.stops(up)


async def test_ctrl_c_leaves_the_job_in_line_and_says_so(house: House) -> None:
    up, address = house.comes_up("up", "--port", "0", "--slots", "0")
    waiting = house.starts("submit", "--wait", "--", "true")
    assert "is number 1 in line" in said(waiting)
    waiting.send_signal(signal.SIGINT)
    shown, told = waiting.communicate(timeout=30)
    async with Client(address) as client:
        [job] = (await client.line("default")).items
    assert (waiting.returncode, shown) == (130, "")
    assert told.startswith(f"maitred: {job.id} stays in line;")
    house.stops(up)


async def test_a_job_that_is_deleted_meanwhile_is_not_found(house: House) -> None:
    up, address = house.comes_up("up", "--port", "0", "--slots", "0")
    waiting = house.starts("submit", "--wait", "--", "true")
    said(waiting)
    async with Client(address) as client:
        [job] = (await client.line("default")).items
        await client.remove("default", job.id)
    _, told = waiting.communicate(timeout=30)
    assert (waiting.returncode, told) == (4, f"maitred: queue 'default' has no job '{job.id}'\n")
    house.stops(up)
