"""A program under measurement: what it says is heard, and whatever it does, it ends."""

import os
import sys
import time
from pathlib import Path

import pytest

from benchmarks.errors import ProgramEnded, ProgramFailed, TooSlow
from benchmarks.program import Command, Program

CONNECT = (
    "import os, socket, sys, time; s = socket.socket(socket.AF_UNIX); s.connect(os.environ['BENCH_DESK']);"
)
READY = CONNECT + r"s.sendall(b'{\"ready\": true}\n');"


def start(folder: Path, code: str, *, within: float = 20.0) -> Program:
    return Program(Command("program", [sys.executable, "-c", code]), folder, {}, within=within)


def alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


def test_an_answer_is_heard(tmp_path: Path) -> None:
    program = start(tmp_path, READY + "s.sendall(s.recv(100)); time.sleep(60)")
    try:
        assert program.ready == {"ready": True}
        assert program.ask({"do": "echo"}, 10) == {"do": "echo"}
    finally:
        program.kill()


def test_a_program_that_ends_is_reported_with_its_last_words(tmp_path: Path) -> None:
    with pytest.raises(ProgramEnded, match="no such queue"):
        start(tmp_path, "import sys; sys.exit('no such queue')")


def test_a_program_that_never_gets_ready_is_given_up_and_killed(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    with pytest.raises(TooSlow, match="did not get ready"):
        start(
            tmp_path,
            f"import os, time; open({str(note)!r}, 'w').write(str(os.getpid())); time.sleep(60)",
            within=2,
        )
    assert not alive(int(note.read_text()))


def test_an_answer_that_tells_of_an_error_raises(tmp_path: Path) -> None:
    program = start(tmp_path, READY + r"s.recv(100); s.sendall(b'{\"error\": \"full\"}\n'); time.sleep(60)")
    try:
        with pytest.raises(ProgramFailed, match="full"):
            program.ask({"do": "single"}, 10)
    finally:
        program.kill()


def test_killing_a_program_ends_its_children_too(tmp_path: Path) -> None:
    code = READY + (
        "import subprocess; child = subprocess.Popen(['sleep', '60']);"
        r"s.sendall(b'{\"child\": %d}\n' % child.pid); child.wait()"
    )
    program = start(tmp_path, code)
    child = program.hear(10)["child"]
    assert alive(child)
    program.kill()
    deadline = time.monotonic() + 5
    while alive(child) and time.monotonic() < deadline:
        os.sched_yield()
    assert not alive(child)
