"""Minutes of mixed work under fire: `make soak`, MAITRED_SOAK_SEED=7 MAITRED_SOAK_SECONDS=300.

Handlers, commands and scripts in the sandbox, and sessions at a terminal are submitted over HTTP, watched and
cancelled, while servers and workers are killed, stopped and put to sleep, the store is killed, and whoever
gets callbacks hangs and comes back. At the end every accepted job has ended once, every callback arrived with
its id, all rules hold, and nothing is left.
"""

import asyncio
import contextlib
import json
import os
import secrets
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from maitred.client import Client
from maitred.core.job import Job, Phase
from maitred.core.snapshot import Snapshot
from maitred.errors import MaitredError
from maitred.webhooks import verify
from maitred.wire import JobDocument
from maitred.wire.codec import decode_body
from tests.faults.crew import Crew, moods
from tests.faults.scene import QUEUE, Scene
from tests.service.address import Address, Reply, listening
from tests.sessions.parlour import Guest
from tests.waiting import eventually

SECONDS = float(os.environ.get("MAITRED_SOAK_SECONDS", "600"))
LONG_AGO = 24 * 3600.0
WAYS = ("kill", "kill", "kill", "stop", "sleep")
SETTINGS = """
backoff = {first = "20ms", most = "500ms"}
max_waiting = {total = 100000, per_submitter = 100000}
[queues.default.interactive]
per_submitter = 4
idle = "20s"
"""
APP = """
import asyncio, random, time
import maitred
from maitred.worker import current_job
from faults_app import note, q


@q.handler("speak")
async def speak(seconds):
    note("begin")
    job = current_job()
    for step in range(5):
        job.progress(step / 5, f"step {step}")
        job.say(f"{step}\\n")
        await asyncio.sleep(seconds / 5)
    note("end")
    return "said"


@q.handler("stumble")
def stumble():
    note("begin")
    if random.random() < 0.5:
        raise maitred.Transient("not now")
    note("end")
    return "done"
"""
KINDS = {"wait": 6, "block": 4, "speak": 4, "stumble": 3, "command": 8, "fails": 2, "script": 5}
ENDS = {"", "exit", "cancelled", "halted", "abandoned", "idle", "superseded"}


class Guests:
    """Those who submit, watch, cancel and sit at terminals; they note what was acknowledged."""

    def __init__(self, crew: Crew, address: Address, dice: Random) -> None:
        self.crew, self.address, self.dice = crew, address, dice
        self.accepted: dict[str, str] = {}
        self.called_back: set[str] = set()
        self.cancelled: set[str] = set()
        self.done: Counter[str] = Counter()

    async def keep_coming(self, over: Callable[[], bool]) -> None:
        """Submit and meddle until it is over."""
        number = 0
        while not over():
            number += 1
            kind = self.dice.choices(list(KINDS), list(KINDS.values()))[0]
            await self._submit(f"{kind}-{number}", kind)
            if self.dice.random() < 0.15 and self.accepted:
                await self._cancel(self.dice.choice(list(self.accepted)[-40:]))
            # Arrivals are random; there is nothing to wait for.
            await asyncio.sleep(self.dice.expovariate(12))

    async def keep_watching(self, over: Callable[[], bool]) -> None:
        """Watch jobs to their end; a stream that breaks is taken up again by the client."""
        while not over():
            if not self.accepted:
                await asyncio.sleep(0.1)
                continue
            id = self.dice.choice(list(self.accepted)[-20:])
            with contextlib.suppress(MaitredError, TimeoutError):
                async with asyncio.timeout(5):
                    await self._watch(id)

    async def _watch(self, id: str) -> None:
        server = next((s for s in self.crew.servers if s.address), None)
        if server is None:
            await asyncio.sleep(0.2)
            return
        numbers: list[int] = []
        async with Client(server.address) as client:
            async for event in client.watch(QUEUE, id):
                if event.event == "reset":
                    numbers.clear()
                if event.event in ("output", "progress"):
                    numbers.append(event.number)
        assert numbers == sorted(set(numbers)), "no piece comes twice"
        self.done["watched"] += 1

    async def _submit(self, key: str, kind: str) -> None:
        body: dict[str, Any] = {
            "key": key,
            "submitter": {"type": "user", "id": key[-1]},
            "run": self._run(kind),
        }
        if self.dice.random() < 0.7:
            body["response_url"] = self.address.at(f"/{key}", Reply(200))
        document = await self.crew.ask(lambda client: client.put(QUEUE, body))
        self.accepted[document.id] = key
        if "response_url" in body:
            self.called_back.add(key)
        self.done[kind] += 1

    def _run(self, kind: str) -> dict[str, Any]:
        seconds = self.dice.choice([0.0, 0.01, 0.1, 0.5])
        if kind in ("wait", "block", "speak"):
            return {"handler": kind, "args": {"seconds": seconds}}
        if kind == "stumble":
            return {"handler": kind}
        if kind == "script":
            made = {"predicate": "file", "path": "made"}
            check = {"condition": made, "on_true": "next", "on_false": "abort"}
            return {"script": [{"cmd": "echo one > made"}, check, {"cmd": ["cat", "made"]}]}
        status = 3 if kind == "fails" else 0
        text = f"seq 200; sleep 1000 & sleep {seconds}; echo made > it; exit {status}"
        return {"command": ["sh", "-c", text], "artifacts": ["it"]}

    async def _cancel(self, id: str) -> None:
        with contextlib.suppress(MaitredError):
            await self.crew.ask(lambda client: self._try_to_cancel(client, id))

    async def _try_to_cancel(self, client: Client, id: str) -> JobDocument | None:
        try:
            answer = await client.cancel(QUEUE, id, reason="changed my mind")
        except MaitredError as error:
            if error.code != "ended":
                raise
            return None
        self.done["cancelled"] += 1
        return answer

    # ---------------------------------------------------------------- at a terminal

    async def keep_sitting(self, over: Callable[[], bool]) -> None:
        """Open one session after the other; where a server goes, take it up at the other."""
        while not over():
            try:
                async with asyncio.timeout(45):
                    await self._sit()
            except (OSError, InvalidHandshake, TimeoutError, AssertionError):
                self.done["session broken off"] += 1
            await asyncio.sleep(self.dice.uniform(0, 1))

    async def _sit(self) -> None:
        first: dict[str, Any] = {
            "submitter": {"type": "user", "id": "sits"},
            "command": ["sh", "-c", "stty raw -echo; echo go; exec head -c 30"],
        }
        shown, typed = bytearray(), 0
        while True:
            server = self.dice.choice([s for s in self.crew.servers if s.address] or [None])
            if server is None:
                await asyncio.sleep(0.2)
                continue
            url = f"ws{server.address.removeprefix('http')}/api/v1/queues/{QUEUE}/interactive"
            async with connect(url) as connection:
                guest = Guest(connection)
                with contextlib.suppress(ConnectionClosed):
                    await guest.says(first)
                while await guest.hears():
                    ended = self._ended(guest)
                    if ended:
                        self.done[ended] += 1
                        return
                    if len(guest.shown) + len(shown) >= 3 + typed and typed < 30:
                        typed += 10
                        with contextlib.suppress(ConnectionClosed):
                            await guest.types("0123456789")
                shown += guest.shown
                started = [word for word in guest.told if word["status"] == "started"]
                if started:
                    first = {"session": started[0]["session"]}
                elif "session" not in first:
                    return
            first |= {"received": len(shown)}
            self.done["session taken up again"] += 1

    @staticmethod
    def _ended(guest: Guest) -> str:
        for word in guest.told:
            if word["status"] in ("denied", "ended"):
                return f"session {word.get('code') or word['status']}"
        return ""


async def play(scene: Scene, seconds: float, seed: int, *, life: float) -> str:
    """Let all of it happen for a while, see that it came to a good end, and tell of it."""
    dice = Random(seed)
    scene.isolated = True
    # Programs have users of their own, who must be able to get there.
    scene.temporary.rmdir()
    scene.temporary = Path(tempfile.mkdtemp(prefix="maitred-soak-", dir="/tmp"))
    scene.temporary.chmod(0o711)
    scene.configure(100, SETTINGS)
    (scene.home / "mixed_app.py").write_text(APP)
    crew = Crew(scene, dice, ways=WAYS, apps=("mixed_app", "mixed_app"))
    loop = asyncio.get_running_loop()
    async with listening() as address:
        guests = Guests(crew, address, Random(seed + 1))
        await crew.come_up()
        until = loop.time() + seconds

        def over() -> bool:
            return loop.time() >= until

        moody = asyncio.create_task(moods(address, Random(seed + 2)))
        try:
            async with crew.under_fire(life, 2 * life):
                await asyncio.gather(
                    guests.keep_coming(over),
                    guests.keep_watching(over),
                    *(guests.keep_sitting(over) for _ in range(2)),
                )
        finally:
            moody.cancel()
            await asyncio.gather(moody, return_exceptions=True)
        await eventually(lambda: all_told(scene), patience=180)
        secret = await crew.ask(secret_of)
        await crew.leave()
        state = await scene.is_clean()
        assert_all_ended_once(scene, state, guests)
        messages = assert_all_were_told(state, address, guests, secret)
    assert scene.processes() == []
    scene.temporary.rmdir()
    codes = Counter(job.code or "completed" for job in state.jobs.values())
    runs = sum(len(job.timeline) for job in state.jobs.values())
    return (
        f"accepted {len(guests.accepted)}, ends {dict(codes)}, runs {runs}, messages {messages} in "
        f"{len(address.requests)} tries\nguests {dict(guests.done)}\nharm {dict(crew.kills)}"
    )


async def secret_of(client: Client) -> str:
    """Give what callbacks are signed with."""
    [local] = [key for key in (await client.keys()).items if key.id == "local"]
    return local.secrets[0].secret


async def all_told(scene: Scene) -> bool:
    """Tell whether all jobs have ended and all callbacks have arrived."""
    with contextlib.suppress(MaitredError):
        state = await scene.store.snapshot()
        return not state.notices and all(job.phase is Phase.ENDED for job in state.jobs.values())
    return False


def assert_all_ended_once(scene: Scene, state: Snapshot, guests: Guests) -> None:
    """No accepted job is lost, none has more than one end, none that ended ran again."""
    assert guests.accepted.keys() <= {job.id for job in state.jobs.values()}, "an accepted job is lost"
    begins: dict[tuple[str, int], list[int]] = defaultdict(list)
    for line in scene.lines("begin"):
        begins[line.key, line.version].append(line.at)
    # A PUT that is made again, since nobody answered the first, may find that one running or ended.
    for job in state.jobs.values():
        key = decode_body(job.body)["key"]
        run = key, job.version
        accepted = [run for run in job.timeline if not run.code]
        assert len(accepted) == (not job.code), f"{key} has {len(accepted)} accepted results"
        assert len(begins[run]) <= len(job.timeline), f"{key} ran more often than it was started"
        # A cancel ends a job at once; a run that was on its way begins all the same, and is stopped.
        if job.code != "cancelled":
            assert max(begins[run], default=0) <= job.ended_at, f"{key} ran again after its end"
        assert job.code in ENDS, (key, job.code, job.message)
        if key.startswith("command") and not job.code:
            assert [each.name for each in job.artifacts] == ["it"], key


def assert_all_were_told(state: Snapshot, address: Address, guests: Guests, secret: str) -> int:
    """Each callback arrived with its own id, signed, in order for each job; give how many there were."""
    ids: dict[str, tuple[str, str]] = {}
    order: dict[str, list[str]] = defaultdict(list)
    for request in address.requests:
        id, message = verify(secret, request.headers, request.body, LONG_AGO), json.loads(request.body)
        kind, key = message["type"], message["data"]["key"]
        assert ids.setdefault(id, (kind, key)) == (kind, key), f"{id} is of two messages"
        if id not in order[key]:
            order[key].append(id)
    jobs: dict[str, list[Job]] = defaultdict(list)
    for job in state.jobs.values():
        jobs[decode_body(job.body)["key"]].append(job)
    for key in guests.called_back:
        kinds = [ids[id][0] for id in order[key]]
        told = [job for job in jobs[key] if job.code != "superseded"]
        assert kinds.count("job.ended") == len(told), (key, kinds)
        assert kinds[-1] == "job.ended", (key, kinds)
        numbers = [int(id.rpartition("_")[2]) for id in order[key]]
        assert numbers == sorted(numbers), (key, numbers)
    return len(ids)


@pytest.mark.timeout(300)
async def test_mixed_work_comes_to_its_end_once_while_everybody_is_killed(scene: Scene) -> None:
    print(await play(scene, 12, secrets.randbelow(1 << 32), life=6))  # noqa: T201 - shown where it fails


@pytest.mark.soak
@pytest.mark.timeout(SECONDS + 600)
async def test_mixed_work_comes_to_its_end_once_through_minutes_of_turmoil(tmp_path: Path) -> None:
    seed = int(os.environ.get("MAITRED_SOAK_SEED", secrets.randbelow(1 << 32)))
    print(f"\nseed {seed}, {SECONDS:g} s")  # noqa: T201 - whoever repeats the run needs it
    async with Scene(tmp_path) as scene:
        print(await play(scene, SECONDS, seed, life=10))  # noqa: T201 - its numbers
