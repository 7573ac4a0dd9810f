"""`maitred shell`: a real terminal at a session."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import maitred
from tests.cli.house import House

PATIENCE = 60


class Desk:
    """A terminal at which somebody sits, with a command that runs on it."""

    def __init__(self, home: Path, *words: str, **environment: str) -> None:
        self.ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 101, 0, 0))
        self._as_before = termios.tcgetattr(theirs)
        self._theirs = theirs
        env = {name: value for name, value in os.environ.items() if not name.startswith("MAITRED_")}
        env |= {"PYTHONPATH": str(Path(maitred.__file__).parents[1]), "TERM": "xterm", **environment}
        self.process = subprocess.Popen(
            ["setsid", "--ctty", "--wait", sys.executable, "-m", "maitred", "shell", *words],
            cwd=home,
            env=env,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
        self.seen = b""

    def types(self, keys: str) -> None:
        """Press keys."""
        os.write(self.ours, keys.encode())

    def until(self, pattern: str) -> str:
        """Look until a pattern was shown since the last time."""
        patience = time.monotonic() + PATIENCE
        while not (found := re.search(pattern.encode(), self.seen, re.DOTALL)):
            assert time.monotonic() < patience, (pattern, self.seen)
            if select.select([self.ours], [], [], 0.5)[0]:
                self.seen += os.read(self.ours, 65536)
        self.seen = self.seen[found.end() :]
        return found[0].decode()

    def resizes(self, columns: int, rows: int) -> None:
        """Pull at the window."""
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def ends(self) -> int:
        """Wait for the end of the command; give its exit status. The terminal is as it was."""
        status = self.process.wait(PATIENCE)
        assert termios.tcgetattr(self._theirs) == self._as_before
        return status

    def close(self) -> None:
        """Switch it off."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.ours)
        os.close(self._theirs)


@pytest.fixture
def desks() -> Iterator[list[Desk]]:
    desks: list[Desk] = []
    yield desks
    for desk in desks:
        desk.close()


@pytest.fixture
def up(house: House) -> House:
    house.comes_up("up", "--port", "0", "--slots", "2")
    return house


def test_a_shell_is_a_terminal_with_its_size_its_keys_and_its_exit_status(
    up: House, desks: list[Desk]
) -> None:
    desks.append(desk := Desk(up.home))
    desk.until(r"\$ ")
    desk.types("stty size\r")
    desk.until("33 101")
    desk.resizes(77, 22)
    desk.types("sleep 0.2; stty size\r")
    desk.until("22 77")
    desk.types("sleep 1000\r")
    desk.until("sleep 1000")
    desk.types("\x03")
    desk.until(r"\$ ")
    desk.types("echo st''ill here\r")
    desk.until("still here")
    desk.types("exit 7\r")
    assert desk.ends() == 7


def test_ctrl_d_ends_it(up: House, desks: list[Desk]) -> None:
    desks.append(desk := Desk(up.home, "--", "sh"))
    desk.until(r"\$ ")
    desk.types("\x04")
    assert desk.ends() == 0


def test_a_program_with_files_runs_on_it_and_a_signal_that_ends_it_is_told_as_shells_do(
    up: House, desks: list[Desk]
) -> None:
    (up.home / "hello.sh").write_text("echo hello $1; read x; kill -KILL $$\n")
    desks.append(desk := Desk(up.home, "--file", "hello.sh", "--as", "team:7", "--", "sh", "hello.sh", "you"))
    desk.until("hello you")
    assert '"id":"7"' in up.says("top", "--json").replace(" ", "") or "team" in up.says("top", "--json")
    desk.types("\r")
    assert desk.ends() == 137


def test_who_is_denied_is_told_why_and_the_terminal_stays_as_it_is(up: House, desks: list[Desk]) -> None:
    desks.append(first := Desk(up.home, "--", "cat"))
    first.types("x\r")
    first.until("x.*x")
    desks.append(second := Desk(up.home, "--", "cat"))
    second.until("has as many sessions as are allowed: 1")
    assert second.ends() == 5
    desks.append(third := Desk(up.home, "--queue", "nope"))
    third.until("there is no queue 'nope'")
    assert third.ends() == 4
    first.types("\x04")
    assert first.ends() == 0


def test_without_a_terminal_what_is_piped_in_is_typed_and_its_end_is_ctrl_d(up: House) -> None:
    typed = subprocess.run(
        [sys.executable, "-m", "maitred", "shell", "--", "sh", "-c", "stty -echo; cat; exit 4"],
        input=b"one\ntwo\n",
        cwd=up.home,
        env={**os.environ, "PYTHONPATH": str(Path(maitred.__file__).parents[1])},
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    assert typed.returncode == 4, typed.stderr
    assert typed.stdout.split()[-2:] == [b"one", b"two"]


def test_a_session_that_idles_is_warned_and_says_why_it_ended(house: House, desks: list[Desk]) -> None:
    config = house.home / "maitred.toml"
    config.write_text(f'{config.read_text()}\n[queues.default.interactive]\nidle = "3s"\n')
    house.comes_up("up", "--port", "0", "--slots", "1")
    desks.append(desk := Desk(house.home, "--", "cat"))
    desk.until("this session ends in 0.3 s: nobody has typed for 3 s")
    desk.until(r"the session has ended \(idle\): nobody had typed for too long")
    assert desk.ends() > 0


def test_it_comes_back_when_its_server_was_killed(house: House, desks: list[Desk]) -> None:
    up, address = house.comes_up("up", "--port", "0", "--slots", "1")
    serving, other = house.comes_up("serve", "--port", "0")
    assert (house.home / ".maitred" / "address").read_text().strip() == other
    desks.append(desk := Desk(house.home, "--", "sh", "-c", "stty -echo; echo go; exec cat"))
    desk.until("go\r\n")
    desk.types("one\r")
    desk.until("one\r\n")
    (house.home / ".maitred" / "address").write_text(address)
    serving.kill()
    desk.until("the connection broke.*connected again\r\n")
    desk.types("two\r")
    desk.until("^two\r\n")
    desk.types("\x04")
    assert desk.ends() == 0
    house.stops(up, signal.SIGTERM)
