"""Commands: a program in a directory and a process group of its own.

Whatever it started in its group is gone before the slot is free again: SIGTERM, a while to tidy up, SIGKILL.
It sees its files, PATH and the locale, and nothing else of the worker's environment. If the worker is killed,
a parent-death signal ends the program, and the undertaker the rest of its group and its directory.
"""

import asyncio
import contextlib
import os
import shutil
import signal
import tempfile
from base64 import b64decode
from pathlib import Path
from typing import Any

from maitred.worker.outcome import Outcome, completed, failed, interrupted
from maitred.worker.undertaker import Undertaker

OUTPUT_LIMIT = 64 * 1024
_PASSED_ON = ("PATH", "LANG", "LC_ALL", "TZ")
_CHUNK = 1 << 16


class Tail:
    """The last part of what a program prints into a pipe of ours.

    The pipe is not the program's own object, so that waiting for its end does not wait for others who still
    hold the other side.
    """

    def __init__(self) -> None:
        self.kept = bytearray()
        self.size = 0
        self._out, self.into = os.pipe()

    async def read(self) -> None:
        """Read until the end, or until cancelled."""
        loop = asyncio.get_running_loop()
        stream = asyncio.StreamReader()
        pipe = os.fdopen(self._out, "rb", 0)
        transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stream), pipe)
        try:
            while chunk := await stream.read(_CHUNK):
                self.size += len(chunk)
                self.kept += chunk
                if len(self.kept) > 2 * OUTPUT_LIMIT:
                    del self.kept[:-OUTPUT_LIMIT]
        finally:
            transport.close()

    def close(self) -> None:
        """Give up a pipe that was never read from."""
        os.close(self._out)

    def text(self) -> str:
        """Give the text, with a note where its beginning was cut."""
        kept = bytes(self.kept[-OUTPUT_LIMIT:])
        cut = self.size - len(kept)
        note = f"[{cut} bytes cut]\n" if cut else ""
        return note + kept.decode("utf-8", "replace")


def lay_out(home: Path, files: dict[str, dict[str, str]]) -> None:
    """Write the job's files; their names were checked when it was submitted."""
    for name, content in files.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content["text"].encode() if "text" in content else b64decode(content["base64"]))


async def run_command(run: dict[str, Any], kill_after: float, undertaker: Undertaker) -> Outcome:
    """Run a command to its end. Cancelling this stops it, and what it has printed is in the outcome."""
    home = Path(tempfile.mkdtemp(prefix="maitred-job-"))
    undertaker.expect(home)
    laid_out = asyncio.ensure_future(asyncio.to_thread(lay_out, home, run.get("files") or {}))
    try:
        await asyncio.shield(laid_out)
        return await _run_in(home, run["command"], kill_after, undertaker)
    except (OSError, ValueError) as error:
        return failed("command", f"it could not be started: {error}")
    finally:
        # A thread that still writes files would bring the directory back.
        await asyncio.wait([laid_out])
        await asyncio.to_thread(shutil.rmtree, home, ignore_errors=True)
        undertaker.forget(home)


async def _run_in(home: Path, argv: list[str], kill_after: float, undertaker: Undertaker) -> Outcome:
    out, err = Tail(), Tail()
    starting = asyncio.ensure_future(_start(home, argv, out, err))
    stopped = False
    try:
        process = await asyncio.shield(starting)
    except asyncio.CancelledError:
        # Only what has started can be ended with all that it starts itself.
        process, stopped = await starting, True
    undertaker.expect(home, process.pid)
    readers = [asyncio.create_task(out.read()), asyncio.create_task(err.read())]
    try:
        if not stopped:
            await process.wait()
    except asyncio.CancelledError:
        stopped = process.returncode is None
    finally:
        await asyncio.shield(_end_group(process, kill_after))
        # With the group gone the pipes end; only somebody who left the group could hold them open.
        await asyncio.wait(readers, timeout=kill_after)
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)
    shown = {"exit": process.returncode, "stdout": out.text(), "stderr": err.text()}
    if stopped:
        return interrupted(shown)
    if process.returncode:
        return failed("exit", _status(process.returncode), shown)
    return completed(shown)


async def _start(home: Path, argv: list[str], out: Tail, err: Tail) -> asyncio.subprocess.Process:
    # A parent-death signal ends the program with a worker that is killed; setpriv sets it before the exec.
    tether = ["setpriv", "--pdeathsig", "KILL", "--"] if shutil.which("setpriv") else []
    try:
        if tether:
            _expect_program(argv[0])
        return await asyncio.create_subprocess_exec(
            *tether,
            *argv,
            cwd=home,
            env={name: os.environ[name] for name in _PASSED_ON if name in os.environ} | {"HOME": str(home)},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=out.into,
            stderr=err.into,
            start_new_session=True,
        )
    except BaseException:
        out.close()
        err.close()
        raise
    finally:
        os.close(out.into)
        os.close(err.into)


def _expect_program(name: str) -> None:
    """Raise what starting it would: behind the tether nobody can tell why it did not start."""
    if "/" not in name and not shutil.which(name, path=os.environ.get("PATH")):
        raise FileNotFoundError(f"there is no program {name!r}")


def _status(code: int) -> str:
    if code < 0:
        return f"it was ended by {signal.Signals(-code).name}"
    return f"it ended with exit status {code}"


async def _end_group(process: asyncio.subprocess.Process, kill_after: float) -> None:
    """End what is left of the program's group and wait until it is gone."""
    group = process.pid
    if process.returncode is None:
        _signal(group, signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(kill_after):
                await process.wait()
        _signal(group, signal.SIGKILL)
    await process.wait()
    pause = 0.001
    while _signal(group, signal.SIGKILL) and _alive(group):
        await asyncio.sleep(pause)
        pause = min(pause * 2, 0.05)


def _signal(group: int, number: signal.Signals) -> bool:
    """Send a signal to a group; tell whether anybody was there."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _alive(group: int) -> bool:
    """Tell whether the group has a member that is not just a zombie nobody collected."""
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, member_of = entry.read_text().rpartition(")")[2].split()[:3]
            if int(member_of) == group and state not in "ZX":
                return True
    return False
