"""Files come into a room inline or by address, and those that are asked for are kept."""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from maitred.core.output import Artifact, Stream
from maitred.worker.command import run_command
from maitred.worker.outcome import Outcome
from tests.service.address import Reply, listening
from tests.worker.cells import KINDS, Cell, cell_of


@pytest.fixture(params=KINDS)
async def cell(request: pytest.FixtureRequest) -> AsyncIterator[Cell]:
    async with cell_of(request.param) as cell:
        yield cell


class Said:
    """What a command said and left."""

    def __init__(self) -> None:
        self.parts: list[tuple[Stream, bytes, int]] = []
        self.kept: list[Artifact] = []

    def say(self, stream: Stream, data: bytes, cut: int) -> None:
        self.parts.append((stream, data, cut))

    async def keep(self, artifacts: list[Artifact]) -> None:
        self.kept += artifacts


async def run(cell: Cell, said: Said, script: str, *, changes: Any = None, **more: Any) -> Outcome:
    sandbox = cell.with_settings(**(changes or {}))
    body = {"command": ["sh", "-c", script], **more}
    return await run_command(body, sandbox, say=said.say, keep=said.keep)


async def test_what_is_named_is_kept_with_a_type_also_of_a_failure(cell: Cell) -> None:
    said = Said()
    script = "mkdir d; echo '{}' > d/a.json; printf x > b; printf y > c.html; exit 3"
    outcome = await run(cell, said, script, artifacts=["d/a.json", "b", "c.html"])
    assert outcome.code == "exit"
    assert said.kept == [
        Artifact("d/a.json", "application/json", b"{}\n"),
        Artifact("b", "application/octet-stream", b"x"),
        Artifact("c.html", "text/html", b"y"),
    ]


async def test_what_is_no_file_of_its_own_is_refused_and_told(cell: Cell) -> None:
    said = Said()
    script = "ln -s /etc/passwd link; ln -s /etc up; mkfifo pipe; mkdir dir; seq 999 > big; echo > ok"
    names = ["link", "up/passwd", "pipe", "dir", "big", "missing", "ok/in", "ok"]
    outcome = await run(cell, said, script, changes={"artifact_limit": 2000}, artifacts=names)
    refused = json.loads(outcome.result)["artifacts_refused"]
    assert [artifact.name for artifact in said.kept] == ["ok"]
    assert set(refused) == set(names) - {"ok"}
    assert refused["missing"] == "it is not there"
    assert refused["pipe"] == refused["dir"] == "it is not a file"
    assert refused["link"] == "it is a link, and links are not followed"
    assert refused["up/passwd"] == refused["ok/in"] == "its directory is a link, or not a directory"
    assert refused["big"] == "it has 3888 bytes, of which 2000 are left to keep"


async def test_who_is_stopped_while_files_are_kept_has_what_was_printed(cell: Cell) -> None:
    async def keep(_artifacts: list[Artifact]) -> None:
        task.cancel()
        await asyncio.Event().wait()

    body = {"command": ["sh", "-c", "echo all > file; echo said"], "artifacts": ["file"]}
    task = asyncio.create_task(run_command(body, cell.with_settings(), keep=keep))
    outcome = await task
    assert (outcome.code, json.loads(outcome.result)["stdout"]) == ("stopped", "said\n")


async def test_the_limit_is_for_all_artifacts_together(cell: Cell) -> None:
    said = Said()
    script = "for i in a b c; do head -c 900 /dev/zero > $i; done"
    outcome = await run(cell, said, script, changes={"artifact_limit": 2000}, artifacts=["a", "b", "c"])
    assert [artifact.name for artifact in said.kept] == ["a", "b"]
    assert set(json.loads(outcome.result)["artifacts_refused"]) == {"c"}


async def test_output_is_streamed_to_its_limit_and_ends_with_the_last_part(cell: Cell) -> None:
    said = Said()
    await run(cell, said, "yes | head -c 1000000; echo end", changes={"output_limit": 20_000})
    *head, (stream, last, cut) = said.parts
    streamed = sum(len(data) for _, data, _ in head)
    assert 0 < streamed <= 20_000 - len(last), "there is room for the last part beside it"
    assert (stream, streamed + len(last) + cut) == ("stdout", 1_000_004)
    assert last.endswith(b"end\n")


async def test_what_fits_is_streamed_whole_in_order(cell: Cell) -> None:
    said = Said()
    outcome = await run(cell, said, "echo one; sleep 0.1; echo two >&2; sleep 0.1; echo three")
    assert said.parts == [("stdout", b"one\n", 0), ("stderr", b"two\n", 0), ("stdout", b"three\n", 0)]
    assert json.loads(outcome.result) == {"exit": 0, "stdout": "one\nthree\n", "stderr": "two\n"}


async def test_a_limit_that_is_hit_names_the_failure(cell: Cell) -> None:
    outcome = await run(cell, Said(), "exec head -c 12M /dev/zero > big")
    assert outcome.code == "file-size"
    assert json.loads(outcome.result)["hit"] == "file-size"


def by_address(url: str, content: bytes) -> dict[str, str]:
    return {"url": url, "sha256": hashlib.sha256(content).hexdigest()}


async def test_a_file_is_fetched_by_its_address_and_compared(cell: Cell) -> None:
    async with listening() as there:
        url = there.at("/f", Reply(body=b"hello\n"))
        files = {"d/f": by_address(url, b"hello\n"), "g": {"text": "x"}}
        outcome = await run(cell, Said(), "cat d/f g", files=files)
        assert json.loads(outcome.result)["stdout"] == "hello\nx"
        outcome = await run(cell, Said(), "true", files={"f": by_address(url, b"other")})
        assert (outcome.code, outcome.transient) == ("files", False)
        assert "has the sha256" in outcome.message


async def test_a_file_that_cannot_be_had_fails_the_job_for_now_or_for_good(cell: Cell) -> None:
    async with listening() as there:
        busy, gone = there.at("/busy", Reply(503)), there.at("/gone", Reply(404))
        large = there.at("/large", Reply(endless=b"x" * 65536))
        outcomes = [
            await run(cell, Said(), "true", files={"f": by_address(url, b"")}) for url in (busy, gone, large)
        ]
        private = await run(
            cell, Said(), "true", files={"f": by_address(gone, b"")}, changes={"private_addresses": False}
        )
    assert [(each.code, each.transient) for each in outcomes] == [
        ("files", True),
        ("files", False),
        ("files", False),
    ]
    assert (private.code, "private network" in private.message) == ("files", True)
