"""Programs on a terminal: what is typed is heard, its size is known, and they end with all of their own."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from maitred.core.output import Stream
from maitred.worker.room import Room
from maitred.worker.terminal import Terminal
from tests.worker.cells import KINDS, Cell, cell_of
from tests.worker.processes import running, unlikely_nap


@pytest.fixture(params=KINDS)
async def cell(request: pytest.FixtureRequest) -> AsyncIterator[Cell]:
    async with cell_of(request.param) as cell:
        yield cell


class Screen:
    """What a terminal shows."""

    def __init__(self) -> None:
        self.shown = b""
        self._news = asyncio.Event()

    def hear(self, stream: Stream, data: bytes) -> None:
        assert stream == "tty"
        self.shown += data
        self._news.set()

    async def shows(self, text: bytes, times: int = 1) -> None:
        while self.shown.count(text) < times:
            self._news.clear()
            await self._news.wait()


async def shell(room: Room, screen: Screen, script: str) -> Terminal:
    return await room.run_terminal(["sh", "-c", script], (91, 17), screen.hear)


async def test_what_is_typed_is_read_and_the_size_is_known(cell: Cell) -> None:
    screen = Screen()
    async with cell.with_settings().room() as room:
        terminal = await shell(
            room, screen, "test -t 0 && test -t 1 && stty size; read x; echo got-$x; exit 5"
        )
        await screen.shows(b"17 91")
        terminal.write(b"word\n")
        ended = await terminal.wait()
    assert b"got-word" in screen.shown
    assert ended.exit == 5


async def test_a_new_size_is_heard_of(cell: Cell) -> None:
    screen = Screen()
    async with cell.with_settings().room() as room:
        script = "trap 'stty size; exit 0' WINCH; echo up; while :; do sleep 0.05; done"
        terminal = await shell(room, screen, script)
        await screen.shows(b"up")
        terminal.resize(132, 43)
        await screen.shows(b"43 132")
        assert (await terminal.wait()).exit == 0


async def test_ctrl_c_interrupts_what_is_in_front(cell: Cell) -> None:
    screen, nap = Screen(), unlikely_nap()
    async with cell.with_settings().room() as room:
        shell = ["bash", "--norc", "-i"]
        terminal = await room.run_terminal(shell, (80, 24), screen.hear, env={"PS1": "your-turn "})
        terminal.write(f"echo be''gun; sleep {nap}; echo in''terrupted\n".encode())
        await screen.shows(b"begun\r\n")
        terminal.write(b"\x03")
        await screen.shows(b"your-turn ", times=2)
        terminal.write(b"echo again-$((40 + 2)); exit 3\n")
        await screen.shows(b"again-42")
        assert (await terminal.wait()).exit == 3
        assert not running(nap)


async def test_a_terminal_that_is_stopped_is_gone_with_all_of_its_own(cell: Cell) -> None:
    screen, nap = Screen(), unlikely_nap()
    async with cell.with_settings().room() as room:
        terminal = await shell(
            room, screen, f"trap '' HUP TERM; setsid sleep {nap} & echo up; sleep {nap}; sleep {nap}"
        )
        await screen.shows(b"up")
        waiting = asyncio.create_task(terminal.wait())
        await asyncio.sleep(0)
        waiting.cancel()
        ended = await waiting
        assert ended.stopped
        assert not running(nap)


async def test_a_terminal_has_its_time(cell: Cell) -> None:
    async with cell.with_settings().room() as room:
        terminal = await shell(room, Screen(), "sleep 300")
        assert (await terminal.wait(0.2)).timed_out
