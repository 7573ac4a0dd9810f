"""Commands run in a room of their own, and nothing of them is left."""

import json
from dataclasses import replace
from typing import Any

import pytest

from maitred.core.job import Phase
from maitred.service.host import this_host
from tests.waiting import eventually
from tests.worker.conftest import Kitchen
from tests.worker.processes import running, unlikely_nap


@pytest.fixture(params=["valkey"])
def kind(request: pytest.FixtureRequest) -> str:
    """One store is enough: commands are the worker's own business."""
    return str(request.param)


async def run(kitchen: Kitchen, *argv: str, **more: object) -> tuple[str, dict[str, object]]:
    async with kitchen.worker():
        await kitchen.command(*argv, **more)  # type: ignore[arg-type]
        job = await kitchen.ended()
    return job.code, json.loads(job.result or b"{}")


async def test_a_command_prints_and_ends(kitchen: Kitchen) -> None:
    code, result = await run(kitchen, "sh", "-c", "echo out; echo err >&2")
    assert (code, result) == ("", {"exit": 0, "stdout": "out\n", "stderr": "err\n"})


async def test_a_command_has_its_files_and_no_others(kitchen: Kitchen) -> None:
    files = {"a/b.txt": {"text": "hello"}, "c": {"base64": "AAE="}}
    code, result = await run(
        kitchen, "sh", "-c", "cat a/b.txt; wc -c < c; find . -type f | wc -l", files=files
    )
    assert (code, result["stdout"]) == ("", "hello2\n2\n")


async def test_a_command_does_not_see_the_workers_environment(
    kitchen: Kitchen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "x")
    _, result = await run(kitchen, "env")
    assert "SECRET" not in str(result["stdout"])


async def test_a_status_other_than_zero_is_a_failure_with_its_output(kitchen: Kitchen) -> None:
    code, result = await run(kitchen, "sh", "-c", "echo so far; exit 3")
    assert (code, result["exit"], result["stdout"]) == ("exit", 3, "so far\n")
    assert (await kitchen.view()).job.message == "it ended with exit status 3"


async def test_a_program_that_is_not_there_is_a_clear_failure(kitchen: Kitchen) -> None:
    code, _ = await run(kitchen, "no-such-program")
    assert code == "command"
    assert "no-such-program" in (await kitchen.view()).job.message


@pytest.mark.parametrize("bubble", [True, False])
async def test_what_cannot_be_started_is_told_by_its_name_and_not_by_a_wrappers(
    kitchen: Kitchen, bubble: bool
) -> None:
    kitchen.host = this_host() if bubble else replace(this_host(), bwrap="")
    laid = {"text": {"text": "hello"}, "lost": {"text": "#!/usr/bin/no-such-shell\n"}}
    chmod: dict[str, Any] = {"cmd": "chmod +x text lost; cp text plain; chmod -x plain; ln -s loop loop"}
    words = {
        "./none": "there is no program './none'",
        "/usr/bin/none": "there is no program '/usr/bin/none'",
        "./loop": "there is no program './loop'",
        "./plain": "'./plain' is not executable; name what runs it, as in `sh ./plain`",
        ".": "there is no program '.'",
        "./": "'./' is not a file that could be run",
        "./text": "'./text' is neither a program nor a script, which would begin with `#!`",
        "./lost": "'./lost' is to be run by '/usr/bin/no-such-shell', and there is no such program",
    }
    steps = [chmod, *({"cmd": [name], "on_fail": "next"} for name in words), {"cmd": "true"}]
    async with kitchen.worker():
        await kitchen.script(*steps, files=laid)
        job = await kitchen.ended()
    _, *answers, _ = json.loads(job.result)["responses"]
    wanted = [f"it could not be started: {each}\n" for each in words.values()]
    assert [answer["stderr"] for answer in answers] == wanted
    assert {answer["status"] for answer in answers} == {None}


async def test_output_is_bounded_and_the_cut_is_shown(kitchen: Kitchen) -> None:
    code, result = await run(kitchen, "sh", "-c", "yes 0123456789 | head -c 1000000; echo; echo end")
    assert code == ""
    text = str(result["stdout"])
    assert len(text) < 70_000
    assert text.startswith("[")
    assert text.endswith("end\n")


async def test_what_a_command_leaves_behind_is_ended_with_it(kitchen: Kitchen) -> None:
    nap = unlikely_nap()
    code, result = await run(kitchen, "sh", "-c", f"sleep {nap} & kill -0 $! && echo there")
    assert (code, result["stdout"]) == ("", "there\n")
    assert not running(nap)


async def test_a_cancelled_command_is_ended(kitchen: Kitchen) -> None:
    nap = unlikely_nap()
    async with kitchen.worker():
        await kitchen.command("sh", "-c", f"sleep {nap}; true")
        await kitchen.until(Phase.RUNNING)

        async def started() -> bool:
            return running(nap)

        async def free() -> bool:
            return (await kitchen.store.status()).free == 2

        await eventually(started)
        await kitchen.store.cancel("job", "")
        await eventually(free)
        assert not running(nap)
