"""Programs that try to get out of their sandbox, take more than they may, or stay: each is stopped."""

import asyncio
import os
import secrets
import socket
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from maitred.worker import room, terminal
from maitred.worker.program import end_tree
from tests.waiting import eventually
from tests.worker.cells import KINDS, Cell, cell_of
from tests.worker.processes import running, unlikely_nap


@pytest.fixture(params=KINDS)
async def cell(request: pytest.FixtureRequest) -> AsyncIterator[Cell]:
    async with cell_of(request.param) as cell:
        yield cell


@pytest.fixture
async def bubble() -> AsyncIterator[Cell]:
    async with cell_of("bubble") as cell:
        yield cell


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """No room is left of any test in this process."""
    before = set(rooms())
    yield
    assert {room for room in set(rooms()) - before if room.stat().st_uid == os.geteuid()} == set()


def rooms() -> list[Path]:
    return list(Path(tempfile.gettempdir()).glob(f"maitred-job-{os.getpid()}-*"))


# -------------------------------------------------------------------- what it sees


async def test_a_program_has_its_files_in_its_home_and_works_there(cell: Cell) -> None:
    ended = await cell.sh(
        'cat a/b; cd "$HOME" && cat a/b; echo x > new && cat new', {"a/b": {"text": "hi\n"}}
    )
    assert (ended.exit, ended.stdout) == (0, "hi\nhi\nx\n")


async def test_a_program_sees_nothing_of_the_workers_environment(
    cell: Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "x")
    names = {line.partition("=")[0] for line in (await cell.sh("env")).stdout.splitlines()}
    assert names <= {
        "PATH",
        "LANG",
        "LC_ALL",
        "TZ",
        "HOME",
        "PWD",
        "TMPDIR",
        "MAITRED_ROOM",
        "SHLVL",
        "_",
        "OLDPWD",
    }


async def test_a_program_has_none_of_the_workers_open_files(cell: Cell) -> None:
    with socket.socket() as ours:
        os.set_inheritable(ours.fileno(), True)
        assert (await cell.sh("ls /proc/self/fd")).stdout.split() == ["0", "1", "2", "3"], "3 is ls's own"


async def test_a_program_cannot_read_what_is_not_its_own(bubble: Cell, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s3cret")
    async with bubble.with_settings().room({"mine": {"text": "s3cret"}}) as other:
        words = [
            "/etc/shadow",
            str(secret),
            str(other.home / "mine"),
            __file__,
            "/root",
            "/var",
            "/run",
            "/sys",
        ]
        for name in words:
            ended = await bubble.sh(f"cat {name} || ls {name}")
            assert ended.exit, name
            assert "s3cret" not in ended.stdout
            assert "No such file" in ended.stderr


async def test_a_user_of_its_own_cannot_read_what_is_the_workers_or_another_jobs(tmp_path: Path) -> None:
    async with cell_of("users") as cell, cell.with_settings().room({"mine": {"text": "s3cret"}}) as other:
        for name in ("/etc/shadow", other.home / "mine", f"/proc/{os.getpid()}/environ"):
            ended = await cell.sh(f"cat {name}")
            assert ended.exit
            assert "Permission denied" in ended.stderr


async def test_a_program_without_a_network_is_not_told_who_is_there(bubble: Cell) -> None:
    ended = await bubble.sh("cat /etc/hosts /etc/resolv.conf")
    assert ended.stdout == "127.0.0.1 localhost job\n::1 localhost job\n"


async def test_a_program_can_write_in_its_home_and_tmp_only(bubble: Cell) -> None:
    ended = await bubble.sh(
        "for d in / /dev /etc /usr /usr/bin /home /proc; do touch $d/x 2>/dev/null && echo $d; done;"
        "touch ~/x /tmp/x /dev/shm/x && echo fine"
    )
    assert ended.stdout == "fine\n"


async def test_a_program_cannot_gain_privileges_or_make_namespaces(bubble: Cell) -> None:
    ended = await bubble.sh(
        "grep -E 'NoNewPrivs|CapEff|CapBnd|CapPrm' /proc/self/status; unshare -Ur true && echo out"
    )
    values = dict(line.split(":\t") for line in ended.stdout.splitlines())
    assert values.pop("NoNewPrivs") == "1"
    assert {int(values["CapEff"], 16), int(values["CapPrm"], 16)} == {0}
    assert "out" not in ended.stdout


async def test_no_new_privileges_without_bubblewrap_too(cell: Cell) -> None:
    assert (await cell.sh("grep NoNewPrivs /proc/self/status")).stdout == "NoNewPrivs:\t1\n"


async def test_a_program_is_nobody_special_and_has_a_name(bubble: Cell) -> None:
    assert (await bubble.sh("id -un; id -u; hostname; echo $HOME")).stdout == "job\n1000\njob\n/home/job\n"


# -------------------------------------------------------------------- whom it reaches


async def test_a_program_cannot_reach_loopback(bubble: Cell) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        knock = ["bash", "-c", f"exec 3<>/dev/tcp/127.0.0.1/{port}"]
        async with bubble.with_settings().room() as room:
            ended = await room.run(knock)
        assert ended.exit
        assert "Connection refused" in ended.stderr
        async with bubble.with_settings(sandbox_network=True).room() as room:
            assert (await room.run(knock)).exit == 0, "a queue can allow it"


async def test_a_program_cannot_reach_sockets_of_the_host_by_their_name(bubble: Cell) -> None:
    name = f"maitred-{secrets.token_hex(8)}"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"\0{name}")
        assert name not in (await bubble.sh("cat /proc/net/unix")).stdout


async def test_a_program_can_neither_see_nor_signal_the_worker(bubble: Cell) -> None:
    ended = await bubble.sh(
        f"kill -9 {os.getpid()}; kill -9 -1; ls /proc | grep -c '^[0-9]'; kill -9 1; echo on"
    )
    assert ended.exit == -9 or ended.stdout.endswith("on\n")
    count = (await bubble.sh("ls /proc | grep -c '^[0-9]'")).stdout
    assert int(count) < 8


async def test_a_user_of_its_own_cannot_signal_the_worker() -> None:
    async with cell_of("users") as cell:
        ended = await cell.sh(f"kill -9 {os.getpid()}")
        assert (ended.exit, "not permitted" in ended.stderr) == (1, True)


# -------------------------------------------------------------------- what it takes


async def test_memory_without_end_is_stopped_and_told(cell: Cell) -> None:
    ended = await cell.sh("tail /dev/zero")
    assert ended.exit
    # The watch ends it, or the kernel refuses it more: whoever is quicker than the watch is told by itself.
    assert ended.hit == "memory" or "memory exhausted" in ended.stderr


async def test_memory_of_many_processes_is_counted_together(cell: Cell) -> None:
    script = "for i in 1 2 3; do (head -c 30M /dev/zero | tail -c 30M | sleep 60) & done; wait"
    ended = await cell.sh(script, limit=20)
    assert (ended.hit, ended.killed) == ("memory", True)


async def test_memory_that_is_shared_is_bounded_as_well(bubble: Cell) -> None:
    ended = await bubble.sh("for i in $(seq 1000); do head -c 4M /dev/zero > /dev/shm/$i || exit 1; done")
    assert ended.exit
    assert "No space left" in ended.stderr


async def test_forks_without_end_are_stopped(cell: Cell) -> None:
    nap = unlikely_nap()
    # Root is not kept by the kernel, and the watch has to be quick enough; so there is an end to it here.
    bomb = f"for i in $(seq 2000); do sleep {nap} & done; wait"
    async with cell.with_settings().room() as room:
        ended = await room.run(["bash", "-c", bomb], limit=5.0)
    assert ended.hit == "processes"
    assert not running(nap)
    assert (await cell.sh("echo well")).stdout == "well\n"


async def test_a_full_disk_is_only_the_programs_own(cell: Cell) -> None:
    ended = await cell.sh("for i in $(seq 1000); do head -c 4M /dev/zero > f$i || exit 7; done")
    assert ended.exit
    assert ended.hit == "disk"


async def test_files_without_a_name_count_as_well(cell: Cell) -> None:
    script = 'for i in 3 4 5 6 7 8; do eval "exec $i>f"; rm f; head -c 7M /dev/zero >&$i; done; sleep 60'
    ended = await cell.sh(script, limit=20)
    assert (ended.hit, ended.killed) == ("disk", True)


async def test_a_file_larger_than_allowed_is_stopped_and_told(cell: Cell) -> None:
    ended = await cell.sh("exec head -c 12M /dev/zero > big")
    assert ended.exit
    assert ended.hit == "file-size"


async def test_processor_time_is_bounded(cell: Cell) -> None:
    async with cell.with_settings(sandbox_cpu=1_000_000).room() as room:
        ended = await room.run(["sh", "-c", "while :; do :; done"], limit=60)
    assert (ended.hit, ended.timed_out) == ("cpu", False)


async def test_open_files_are_bounded(cell: Cell) -> None:
    assert (await cell.sh("ulimit -n; ulimit -c")).stdout == "64\n0\n"


# -------------------------------------------------------------------- what it leaves


STAYING = {
    "in the background": "sleep {nap} & exit 0",
    "in a session of its own": "setsid sleep {nap} & sleep 0.1; exit 0",
    "by a double fork": "(setsid sh -c 'sleep {nap} & exit' &) ; sleep 0.2; exit 0",
    "deaf to a hang-up": "nohup sleep {nap} >/dev/null 2>&1 & exit 0",
    "deaf to everything": "trap '' TERM HUP INT; (trap '' TERM HUP INT; sleep {nap}) & exit 0",
}


@pytest.mark.parametrize("way", STAYING)
async def test_nothing_outlives_its_program(cell: Cell, way: str) -> None:
    nap = unlikely_nap()
    ended = await cell.sh(STAYING[way].format(nap=nap))
    assert ended.exit == 0
    assert not running(nap)


async def test_a_stopped_program_is_asked_first_and_then_gone_with_all_of_its_own(cell: Cell) -> None:
    nap = unlikely_nap()
    script = f"trap 'echo bye; exit 3' TERM; setsid sleep {nap} & echo up; while :; do sleep 0.05; done"
    heard = asyncio.Event()
    running_it = asyncio.create_task(cell.sh(script, on_output=lambda *_: heard.set()))
    await heard.wait()

    async def napping() -> bool:
        return running(nap)

    await eventually(napping)
    running_it.cancel()
    ended = await running_it
    assert (ended.stopped, ended.stdout) == (True, "up\nbye\n")
    assert not running(nap)


async def test_a_program_that_has_ended_when_it_is_stopped_is_known_whole(
    bubble: Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def while_it_is_cancelled(*args: Any) -> None:
        for task in cancelled:
            task.cancel()
        await end_tree(*args)

    for module in (room, terminal):
        monkeypatch.setattr(module, "end_tree", while_it_is_cancelled)
    cancelled = [asyncio.create_task(bubble.sh("echo all; exit 3"))]
    ended = await cancelled[0]
    assert (ended.exit, ended.stdout, ended.stopped) == (3, "all\n", False)
    async with bubble.with_settings().room() as its:
        shown = await its.run_terminal(["sh", "-c", "exit 4"], (80, 24), lambda *_: None)
        cancelled = [asyncio.create_task(shown.wait())]
        assert (await cancelled[0]).exit == 4


async def test_a_time_limit_ends_the_program_and_is_told(cell: Cell) -> None:
    nap = unlikely_nap()
    ended = await cell.sh(f"echo so far; sleep {nap}", limit=0.3)
    assert (ended.timed_out, ended.stdout) == (True, "so far\n")
    assert not running(nap)


async def test_links_and_odd_names_are_removed_and_nothing_beyond_them(cell: Cell, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.write_text("still here")
    script = f"""
        ln -s {kept} link; ln -s {tmp_path} up; ln -s / root; ln -s loop loop; mkfifo pipe
        touch "$(printf 'new\\nline')" "$(printf '\\377\\376')" -- -rf ' ' '*'
        mkdir -p locked/in/side && touch locked/in/side/f && chmod 000 locked/in/side locked/in locked
        i=0; while [ $i -lt 1900 ]; do mkdir d && cd d || exit 9; i=$((i + 1)); done
    """
    async with cell.with_settings().room() as room:
        place = room.home.parent
        ended = await room.run(["sh", "-c", script])
        assert (ended.exit, ended.stderr) == (0, "")
    assert not place.exists()
    assert kept.read_text() == "still here"


# -------------------------------------------------------------------- what it prints


async def test_output_without_end_is_read_at_speed_and_bounded(cell: Cell) -> None:
    heard = 0

    def hear(_: str, data: bytes) -> None:
        nonlocal heard
        heard += len(data)

    ended = await cell.sh("yes | head -c 300M; echo end", on_output=hear)
    assert heard == 300 * 1024 * 1024 + 4
    assert len(ended.stdout) < 70_000
    assert ended.stdout.startswith(f"[{heard - 64 * 1024} bytes cut]\n")
    assert ended.stdout.endswith("end\n")


@pytest.mark.soak
async def test_ten_gigabytes_are_printed_and_the_worker_lives(bubble: Cell) -> None:
    ended = await bubble.sh("yes | head -c 10G; echo end")
    assert (ended.exit, ended.stdout.endswith("end\n")) == (0, True)


# -------------------------------------------------------------------- several in one room


async def test_programs_of_one_room_share_its_files_and_nothing_else(cell: Cell) -> None:
    nap = unlikely_nap()
    async with cell.with_settings().room() as room:
        await room.run(
            ["sh", "-c", f'mkdir d; echo one > d/f; echo two > "${{TMPDIR:-/tmp}}/g"; setsid sleep {nap} &']
        )
        assert not running(nap)
        ended = await room.run(["sh", "-c", 'cat f "${TMPDIR:-/tmp}/g"'], cwd="d")
    assert ended.stdout == "one\ntwo\n"


async def test_a_program_or_directory_that_is_not_there_is_told_before_it_starts(cell: Cell) -> None:
    async with cell.with_settings().room() as room:
        with pytest.raises(FileNotFoundError, match="no-such-program"):
            await room.run(["no-such-program"])
        with pytest.raises(FileNotFoundError, match="nowhere"):
            await room.run(["true"], cwd="nowhere")
