"""Scripts run their steps in one room, one after the other, where the end of each leads."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from maitred.core.job import Job
from maitred.core.output import Artifact, Stream
from maitred.core.settings import Settings
from maitred.service.host import this_host
from maitred.worker.command import run_command
from maitred.worker.sandbox import Sandbox
from maitred.worker.script import ScriptRun
from maitred.worker.undertaker import Undertaker
from tests.waiting import eventually
from tests.worker.conftest import Kitchen
from tests.worker.processes import running, unlikely_nap


@pytest.fixture(params=["valkey"])
def kind(request: pytest.FixtureRequest) -> str:
    """One store is enough: scripts are the worker's own business."""
    return str(request.param)


def says(word: str, **more: Any) -> dict[str, Any]:
    return {"cmd": ["echo", word], **more}


def fails(**more: Any) -> dict[str, Any]:
    return {"cmd": ["false"], **more}


def asks(predicate: str, path: str, **more: Any) -> dict[str, Any]:
    return {"condition": {"predicate": predicate, "path": path}, **more}


async def run(kitchen: Kitchen, *steps: dict[str, Any], **more: Any) -> tuple[Job, list[dict[str, Any]]]:
    async with kitchen.worker():
        await kitchen.script(*steps, **more)
        job = await kitchen.ended()
    return job, json.loads(job.result)["responses"]


async def way(kitchen: Kitchen, *steps: dict[str, Any], **more: Any) -> tuple[str, str]:
    """Give what a script said in all, and the code that it ended with."""
    job, responses = await run(kitchen, *steps, **more)
    return "".join(each.get("stdout", "") for each in responses).replace("\n", ""), job.code


async def test_each_step_has_one_response(kitchen: Kitchen) -> None:
    job, responses = await run(
        kitchen,
        {"cmd": ["sh", "-c", "echo out; echo err >&2"], "label": "first"},
        {"cmd": "echo $((6 * 7)) | cat; exit 3", "on_fail": "next"},
        asks("file", "nothing"),
    )
    assert job.code == ""
    assert responses == [
        {
            "step": "0",
            "label": "first",
            "cmd": ["sh", "-c", "echo out; echo err >&2"],
            "status": 0,
            "timed_out": False,
            "stdout": "out\n",
            "stderr": "err\n",
        },
        {
            "step": "1",
            "cmd": "echo $((6 * 7)) | cat; exit 3",
            "status": 3,
            "timed_out": False,
            "stdout": "42\n",
            "stderr": "",
        },
        {"step": "2", "condition": {"predicate": "file", "path": "nothing"}, "holds": False},
    ]


WAYS: list[tuple[list[dict[str, Any]], tuple[str, str]]] = [
    ([says("a"), says("b")], ("ab", "")),
    ([says("a"), fails(), says("never")], ("a", "script")),
    ([says("a"), fails(on_fail="next"), says("b")], ("ab", "")),
    ([says("a", on_complete="output", on_fail=1), says("never")], ("a", "")),
    ([fails(on_fail="output")], ("", "")),
    ([says("a", on_complete="abort")], ("a", "script")),
    ([says("a", on_complete="c"), says("c", label="c")], ("ac", "")),
    ([says("a", on_complete=2), says("b", on_complete="output"), says("c", on_complete=1)], ("acb", "")),
    ([fails(on_fail=[says("x"), says("y")]), says("z")], ("xyz", "")),
    ([fails(on_fail=says("x")), says("z")], ("xz", "")),
    ([fails(on_fail=[fails(on_fail=[says("deep")]), says("y")]), says("z")], ("deepyz", "")),
    ([fails(on_fail=[says("x", on_complete="output")]), says("z")], ("x", "")),
    ([fails(on_fail=[says("x", on_complete="abort")]), says("z")], ("x", "script")),
    ([fails(on_fail=[says("x", on_complete="z")]), says("y"), says("z", label="z")], ("xz", "")),
    ([says("a", on_complete="in", on_fail=[says("x"), says("y", label="in")]), says("z")], ("ayz", "")),
    ([says("a", on_complete=[says("b"), says("c")]), says("d")], ("abcd", "")),
]


@pytest.mark.parametrize(("steps", "expected"), WAYS, ids=range(len(WAYS)))
async def test_steps_run_where_the_ends_lead(
    kitchen: Kitchen, steps: list[dict[str, Any]], expected: tuple[str, str]
) -> None:
    assert await way(kitchen, *steps) == expected


CONDITIONS = [
    ("exists", "a.txt", True),
    ("exists", "d", True),
    ("exists", "none", False),
    ("exists", "d/in", True),
    ("file", "a.txt", True),
    ("file", "d", False),
    ("file", "none", False),
    ("dir", "d", True),
    ("dir", "a.txt", False),
    ("dir", "none", False),
    ("file", "-f", True),
    ("file", "!", True),
    ("exists", "$HOME", False),
]


async def test_conditions_see_what_is_in_the_room(kitchen: Kitchen) -> None:
    files = {name: {"text": ""} for name in ("a.txt", "d/in", "-f", "!")}
    _, responses = await run(kitchen, *(asks(*each[:2]) for each in CONDITIONS), files=files)
    shown = [(each["condition"]["predicate"], each["condition"]["path"], each["holds"]) for each in responses]
    assert shown == CONDITIONS


async def test_conditions_choose_the_way(kitchen: Kitchen) -> None:
    steps = [
        {"cmd": "touch made"},
        asks("file", "made", on_true=[says("yes")], on_false="abort"),
        asks("dir", "made", on_true="abort", on_false=says("no")),
        asks("exists", "gone", on_false="output"),
        says("never"),
    ]
    assert await way(kitchen, *steps) == ("yesno", "")
    job, _ = await run(kitchen, asks("dir", "d", label="look", on_false="abort"), id="job")
    assert (job.code, job.message) == ("script", "'look' found that d is not a directory")


async def test_steps_share_one_room_and_choose_their_directory_in_it(kitchen: Kitchen) -> None:
    files = {"src/a": {"text": "hello "}}
    steps = [
        {"cmd": "mkdir out; cat src/a"},
        {"cmd": "cat a > ../out/b", "working_dir": "src"},
        {"cmd": "cat out/b; basename $PWD", "on_complete": "output"},
    ]
    said, code = await way(kitchen, *steps, files=files)
    assert (said.startswith("hello hello "), code) == (True, "")


async def test_a_directory_that_is_not_there_fails_the_step(kitchen: Kitchen) -> None:
    job, responses = await run(kitchen, {"cmd": "true", "working_dir": "none", "on_fail": [says("x")]})
    assert job.code == ""
    assert responses[0]["status"] != 0
    assert responses[1]["stdout"] == "x\n"


async def test_a_program_that_is_not_there_fails_the_step(kitchen: Kitchen) -> None:
    job, responses = await run(kitchen, {"cmd": ["no-such-program"], "on_fail": [says("x")]})
    assert job.code == ""
    assert responses[0]["status"] != 0
    assert "no-such-program" in responses[0]["stderr"]
    assert responses[1]["stdout"] == "x\n"


async def test_a_step_past_its_timeout_has_failed_and_is_gone(kitchen: Kitchen) -> None:
    job, responses = await run(
        kitchen,
        {"cmd": "echo begun; sleep 300", "timeout": 0.2, "label": "slow", "on_fail": [says("late")]},
        {"cmd": "sleep 300", "timeout": 0.1, "label": "last"},
    )
    slow, late, last = responses
    assert (slow["timed_out"], slow["stdout"], slow["status"] != 0) == (True, "begun\n", True)
    assert (late["timed_out"], late["stdout"]) == (False, "late\n")
    assert last["timed_out"]
    assert (job.code, job.message) == ("script", "'last' took longer than 0.1 s")


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ({"cmd": "exit 3"}, "step 0 ended with exit status 3"),
        ({"cmd": "exit 3", "label": "build"}, "'build' ended with exit status 3"),
        ({"cmd": "kill -9 $$", "label": "build"}, "'build' was ended by SIGKILL"),
        ({"cmd": "true", "on_complete": "abort"}, "step 0 is complete, and leads to abort"),
    ],
)
async def test_an_aborted_script_names_the_step(kitchen: Kitchen, step: dict[str, Any], words: str) -> None:
    job, responses = await run(kitchen, step)
    assert (job.code, job.message, len(responses)) == ("script", words, 1)


async def test_the_jobs_own_limit_stands_above_all(kitchen: Kitchen) -> None:
    await kitchen.set(time_limit=0.5)
    steps = [says("a"), {"cmd": "echo b; sleep 300", "timeout": 200, "on_fail": [says("never")]}]
    job, responses = await run(kitchen, *steps)
    assert job.code == "time-limit"
    assert [each["stdout"] for each in responses] == ["a\n", "b\n"]


async def test_a_cancelled_script_is_ended_with_the_step_that_runs(kitchen: Kitchen) -> None:
    nap = unlikely_nap()
    never = [says("never")]
    async with kitchen.worker():
        await kitchen.script(
            says("a"), {"cmd": f"echo b; sleep {nap}", "on_fail": never, "on_complete": never}
        )

        async def started() -> bool:
            return running(nap)

        async def free() -> bool:
            return (await kitchen.store.status()).free == 2

        await eventually(started)
        await kitchen.store.cancel("job", "cancelled by ann")
        await eventually(free)
        assert not running(nap)
    job = (await kitchen.view()).job
    assert (job.code, job.message) == ("cancelled", "cancelled by ann")
    responses = json.loads(job.result)["responses"]
    assert [(each["stdout"], each["status"]) for each in responses] == [("a\n", 0), ("b\n", -15)]


async def test_output_is_bounded_and_the_cut_is_shown(kitchen: Kitchen) -> None:
    _, responses = await run(kitchen, {"cmd": "yes 0123456789 | head -c 1000000; echo; echo end"}, says("b"))
    text = responses[0]["stdout"]
    assert len(text) < 70_000
    assert text.startswith("[")
    assert text.endswith("end\n")
    assert responses[1]["stdout"] == "b\n"


# ---------------------------------------------------------------- what a run tells while it goes on


@pytest.fixture(params=["walled", "plain"])
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """Rooms as good as this host has them, and such as they are where there are no walls."""
    undertaker = Undertaker()
    host = this_host()
    yield Sandbox(Settings(), host if request.param == "walled" else host.plain(), undertaker)
    undertaker.close()


class Ear:
    """Hears what a script says, and how far it is."""

    def __init__(self) -> None:
        self.said: list[tuple[str, bytes]] = []
        self.progress: list[tuple[float, str]] = []
        self.heard = asyncio.Event()

    def say(self, stream: Stream, data: bytes) -> None:
        self.said.append((stream, data))
        self.heard.set()

    def goes_on(self, fraction: float, message: str) -> None:
        self.progress.append((fraction, message))


async def test_what_steps_print_is_heard_while_they_run_and_in_order(sandbox: Sandbox) -> None:
    ear = Ear()
    async with sandbox.room() as room:
        steps = [says("a"), {"cmd": "echo b >&2"}, asks("dir", "d"), says("c")]
        assert (await ScriptRun(steps, room, ear.say, None).run()).code == ""
    assert ear.said == [("stdout", b"a\n"), ("stderr", b"b\n"), ("stdout", b"c\n")]


async def test_progress_tells_the_step_and_never_goes_back(sandbox: Sandbox) -> None:
    ear = Ear()
    steps = [
        fails(label="build", on_fail=[says("x"), says("y", on_complete="last")]),
        says("skipped"),
        asks("file", "a", label="last"),
        says("end"),
    ]
    async with sandbox.room() as room:
        await ScriptRun(steps, room, None, ear.goes_on).run()
    names = ["build", "step 0.on_fail.0", "step 0.on_fail.1", "last", "step 3", "complete"]
    assert ear.progress == [(at / 5, name) for at, name in enumerate(names)]


async def test_a_run_that_is_cancelled_gives_what_was_answered(sandbox: Sandbox) -> None:
    ear = Ear()
    nap = unlikely_nap()
    steps = [{"cmd": "true"}, {"cmd": f"echo b; sleep {nap}", "on_fail": [says("never")]}]
    async with sandbox.room() as room:
        task = asyncio.create_task(ScriptRun(steps, room, ear.say, None).run())
        await ear.heard.wait()
        task.cancel()
        verdict = await task
        assert not running(nap)
    assert verdict.code == "stopped"
    assert [each["stdout"] for each in verdict.shown["responses"]] == ["", "b\n"]


async def test_nothing_begins_after_a_run_was_cancelled(sandbox: Sandbox) -> None:
    ear = Ear()
    async with sandbox.room() as room:
        task = asyncio.create_task(ScriptRun([says(str(at)) for at in range(100)], room, ear.say, None).run())
        await ear.heard.wait()
        task.cancel()
        verdict = await task
    # The step that ran may have come to its end all the same; the one after it was not begun.
    assert (verdict.code, len(verdict.shown["responses"]) <= 2) == ("stopped", True)


async def test_a_step_that_hits_a_limit_has_failed_and_says_which() -> None:
    undertaker = Undertaker()
    settings = Settings(sandbox_memory=64 << 20)
    eats = {"cmd": "x=x; while :; do x=$x$x; done", "on_fail": [says("full")]}
    async with Sandbox(settings, this_host(), undertaker).room() as room:
        verdict = await ScriptRun([eats], room, None, None).run()
    undertaker.close()
    eaten, full = verdict.shown["responses"]
    assert (verdict.code, eaten["hit"], full["stdout"]) == ("", "memory", "full\n")


async def test_what_a_script_made_is_kept_however_it_ended(sandbox: Sandbox) -> None:
    kept: list[Artifact] = []

    async def keep(artifacts: list[Artifact]) -> None:
        kept.extend(artifacts)

    run: dict[str, Any] = {
        "script": [{"cmd": "echo 7 > out.txt"}, fails()],
        "artifacts": ["out.txt", "no.txt"],
    }
    outcome = await run_command(run, sandbox, keep=keep)
    assert outcome.code == "script"
    assert [(each.name, each.data) for each in kept] == [("out.txt", b"7\n")]
    assert json.loads(outcome.result)["artifacts_refused"].keys() == {"no.txt"}
