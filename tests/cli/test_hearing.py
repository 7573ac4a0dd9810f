"""The commands that give what a job said and made."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from maitred.core.ids import job_id
from maitred.core.job import Finish
from maitred.core.output import Artifact, Part, Saying
from maitred.service.desk import Desk
from maitred.store.memory import MemoryStores
from tests.cli.conftest import Terminal, serving
from tests.http.guest import body

TALKS = job_id("talks")
PICTURE = b"\x89PNG\r\n\xff"


async def said(stores: MemoryStores) -> None:
    """Let a job run that says much and leaves a file behind."""
    await Desk(stores).put("default", body("talks"))
    store = stores.queue("default")
    [start] = (await store.join("w", 1, ["handler:grade"])).starts
    many = tuple(Part("stdout", b"%d\n" % number) for number in range(600))
    last = (Part("stderr", b"oh"), Part("progress", b"{}"), Part("stdout", b"end\n", 12))
    await store.say("w", [Saying(start.lease, many + last)])
    await store.keep("w", start.lease, [Artifact("out/a b.png", "image/png", PICTURE)])
    await store.finish("w", [Finish(start.lease)])


@pytest.fixture
def heard(terminal: Terminal) -> Iterator[Terminal]:
    yield from serving(terminal, said)


def test_output_is_printed_whole_with_what_was_cut(heard: Terminal) -> None:
    numbers = "".join(f"{number}\n" for number in range(600))
    assert heard.types("output", TALKS).stdout == f"{numbers}oh\n[12 bytes cut]\nend\n"
    assert heard.types("output", TALKS, "--stream", "stderr").stdout == "oh"
    wrong = heard.types("output", TALKS, "--stream", "loud")
    assert (wrong.exit_code, "must be one of" in wrong.stderr) == (1, True)


def test_output_as_json_has_every_piece(heard: Terminal) -> None:
    document = heard.gets("output", TALKS)
    assert [piece["number"] for piece in document["items"]] == list(range(1, 604))
    assert (document["first"], document["next"], document["ended"]) == (1, 604, True)


def test_a_job_names_the_files_that_are_kept_of_it(heard: Terminal) -> None:
    assert f"artifacts  out/a b.png ({len(PICTURE)} B)" in heard.types("show", TALKS).stdout


def test_an_artifact_is_printed_or_saved_as_it_is(heard: Terminal, tmp_path: Path) -> None:
    assert heard.types("artifact", TALKS, "out/a b.png").stdout_bytes == PICTURE
    assert heard.types("artifact", TALKS, "out/a b.png", "-o", str(tmp_path / "x")).exit_code == 0
    assert (tmp_path / "x").read_bytes() == PICTURE
    missing = heard.types("artifact", TALKS, "none")
    assert (missing.exit_code, "keeps no file of that name" in missing.stderr) == (4, True)
    nowhere = heard.types("artifact", TALKS, "out/a b.png", "-o", str(tmp_path / "no" / "x"))
    assert (nowhere.exit_code, "cannot be written" in nowhere.stderr) == (2, True)
