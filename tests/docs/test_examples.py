"""Every example on the pages is tried as a reader would."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from maitred import config
from maitred.store.port import Stores
from tests.conftest import Clock
from tests.docs.floor_story import FloorStory
from tests.docs.ledger_story import LedgerStory
from tests.docs.pages import PAGES, ROOT, Block, all_blocks, anchors, blocks, links
from tests.docs.session import Session, Step, fits, steps
from tests.docs.story import Story

WITH_COMMANDS = [page for page in PAGES if any(block.language == "console" for block in blocks(page))]


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    session = Session(tmp_path)
    yield session
    session.closes()


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=lambda page: page.name)
def test_the_commands_of_a_page_show_what_it_says(session: Session, page: Path) -> None:
    for block in blocks(page):
        session.read(block)


@pytest.mark.parametrize("block", all_blocks("line"), ids=str)
async def test_the_stories_of_the_line_are_true(
    stores: Stores, queue_name: str, clock: Clock, block: Block
) -> None:
    await Story(stores, queue_name, clock).play(block.text)


@pytest.mark.parametrize("block", all_blocks("floor"), ids=str)
async def test_the_stories_of_the_floor_are_true(
    stores: Stores, queue_name: str, clock: Clock, block: Block
) -> None:
    await FloorStory(stores, queue_name, clock).play(block.text)


@pytest.mark.parametrize("block", all_blocks("ledger"), ids=str)
async def test_the_stories_of_the_ledger_are_true(
    stores: Stores, queue_name: str, clock: Clock, block: Block
) -> None:
    await LedgerStory(stores, queue_name, clock).play(block.text)


SETTINGS = [block for block in all_blocks("toml") if block.file in (None, "maitred.toml")]
SCRIPTS = [block for block in all_blocks("toml") if block not in SETTINGS]


@pytest.mark.parametrize("block", SCRIPTS, ids=str)
def test_a_script_is_a_file_that_a_command_submits(block: Block) -> None:
    assert any(f"--script {block.file}" in other.text for other in blocks(block.page))


@pytest.mark.parametrize("block", SETTINGS, ids=str)
def test_settings_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: Block) -> None:
    for name in [name for name in os.environ if name.upper().startswith("MAITRED_")]:
        monkeypatch.delenv(name)
    file = tmp_path / "maitred.toml"
    file.write_text(block.text)
    assert config.load(file).queues


@pytest.mark.parametrize("block", all_blocks("python"), ids=str)
def test_python_is_a_file_that_a_command_runs(block: Block) -> None:
    assert block.file, f"{block} begins with no comment that names its file"
    module = block.file.removesuffix(".py")
    runs = [
        step.command for other in blocks(block.page) for step in steps(other) if other.language == "console"
    ]
    runs_it = rf"--app {module}\b|python (-m pytest .*)?{re.escape(block.file)}"
    assert block.file == "conftest.py" or any(re.search(runs_it, command) for command in runs), block


def test_python_has_the_right_types(tmp_path: Path) -> None:
    for block in all_blocks("python"):
        (tmp_path / str(block.file)).write_text(block.text)
    names = sorted(path.name for path in tmp_path.glob("*.py"))
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--cache-dir=cache", *names],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize("block", all_blocks("py"), ids=str)
def test_a_program_for_another_queue_is_shown_to_those_who_come_from_there(block: Block) -> None:
    assert block.page.name == "migrating.md"
    compile(block.text, str(block), "exec")


@pytest.mark.parametrize("block", all_blocks("sh"), ids=str)
def test_what_is_typed_at_make_exists(block: Block) -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    typed = [line.split("#")[0].split() for line in block.text.splitlines()]
    assert all(words[0] == "make" and set(words[1:2]) <= targets for words in typed), block.text


def test_make_run_is_maitred_up() -> None:
    assert "\t@$(BIN)/maitred up $(ARGS)\n" in (ROOT / "Makefile").read_text()


def test_every_block_is_of_a_kind_that_is_tried() -> None:
    tried = {"console", "line", "floor", "ledger", "toml", "python", "sh", "mermaid", "py"}
    plain = [str(block) for page in PAGES for block in blocks(page) if block.language not in tried]
    shown = [name for name in plain if not name.startswith("CONTRIBUTING.md")]
    assert not shown, "a block that nobody tries may be wrong"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for link in links(page):
        parts = urlsplit(link)
        if parts.scheme:
            continue
        target = (page.parent / parts.path).resolve() if parts.path else page
        assert target.exists(), f"{page.name} links to {link}"
        assert not parts.fragment or parts.fragment in anchors(target), f"{page.name} links to {link}"


def test_what_is_shown_is_compared_line_by_line() -> None:
    assert fits("one\n…\nfour", "one  \ntwo\nthree\nfour\n")
    assert fits("id  …\nkey a", "id  xyz\nkey a")
    assert not fits("one\nfour", "one\ntwo\nfour")
    assert not fits("id …", "key a")
    assert steps(Block(ROOT, 1, "console", "$ a \\\n  b\nseen\n$ c\n")) == [
        Step("a b", "seen"),
        Step("c", ""),
    ]
