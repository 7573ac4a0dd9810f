"""A crew under fire: servers, workers and the store, each killed at random moments and started again."""

import asyncio
import contextlib
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from random import Random
from typing import TypeVar

from maitred.client import Client
from maitred.errors import ServerUnreachable, StoreError
from tests.faults.scene import Command, Scene
from tests.service.address import Address
from tests.waiting import eventually

READY = "Maitred is ready at "
WORKING = "Working with"

T = TypeVar("T")


class Member:
    """One process that is started again whenever it is gone."""

    def __init__(self, scene: Scene, ready: str, *words: str) -> None:
        self._scene, self._ready, self._words = scene, ready, words
        self.command: Command | None = None
        self.took = 0.0

    @property
    def alive(self) -> bool:
        return self.command is not None and self.command.process.poll() is None

    @property
    def address(self) -> str:
        """Where a server answers; empty while it does not."""
        said = self.command.said.read_text() if self.command and self.alive else ""
        return next((line.removeprefix(READY) for line in said.splitlines() if line.startswith(READY)), "")

    async def comes_up(self) -> None:
        """Start it, and again if it found no store and ended with a word about it; note how long it took."""
        begun = time.monotonic()
        while True:
            if self.command is None or not self.alive:
                self.command = self._scene.starts(*self._words)
            command = self.command

            async def seen(command: Command = command) -> bool:
                return command.process.poll() is not None or self._ready in command.said.read_text()

            await eventually(seen)
            if self.alive:
                self.took = time.monotonic() - begun
                return
            assert command.process.returncode < 0 or "the store" in command.errors, command.errors

    async def stops(self) -> None:
        """Stop it in order; while the store is away a worker cannot, and says so."""
        assert self.command
        self.command.signal(signal.SIGTERM)
        assert await self.command.ends() == 0 or "the store" in self.command.errors, self.command.errors


class Crew:
    """Two servers, whose clerks compete, and a worker for each app.

    Without others these are of all stages, of the first and of the last ones.
    """

    def __init__(
        self,
        scene: Scene,
        dice: Random,
        *,
        ways: Sequence[str] = ("kill",),
        url: str | None = None,
        apps: Sequence[str] = ("faults_app", "front_app", "back_app"),
    ) -> None:
        """`ways` are those in which a process is harmed: `kill`, `stop` in order, and `sleep`."""
        self.scene, self.dice, self.ways = scene, dice, ways
        self.kills: Counter[str] = Counter()
        self.longest_wait = 0.0
        store = ("--store", url or scene.server.url)
        self.servers = [
            Member(scene, READY, "serve", *store, "--port", "0", "--data", f"data-{n}") for n in range(2)
        ]
        self.workers = [Member(scene, WORKING, "work", *store, "--app", app, "--slots", "4") for app in apps]

    async def come_up(self) -> None:
        """Start whoever is not there."""
        await asyncio.gather(*(member.comes_up() for member in (*self.servers, *self.workers)))

    @contextlib.asynccontextmanager
    async def under_fire(self, life: float, store_life: float) -> AsyncIterator[asyncio.Event]:
        """Kill everyone at random, again and again; at the end all are up again.

        A process lives so long on average, and half as long as it took to come up: else nobody would get
        anything done where that takes long. Gives an event that ends the fire.
        """
        over = asyncio.Event()
        tasks = [
            asyncio.create_task(self._keep_killing(name, member, life, over))
            for name, members in (("server", self.servers), ("worker", self.workers))
            for member in members
        ]
        tasks.append(asyncio.create_task(self._keep_killing_the_store(store_life, over)))
        try:
            yield over
        finally:
            over.set()
            await asyncio.gather(*tasks)
        await self.come_up()

    @contextlib.asynccontextmanager
    async def killed_at(self, moments: Sequence[int]) -> AsyncIterator[asyncio.Event]:
        """Kill one of the crew or the store whenever so many runs have begun; at the end all are up again.

        Gives an event that is set when the last was killed.
        """
        over = asyncio.Event()
        task = asyncio.create_task(self._kill_at(sorted(moments), over))
        try:
            yield over
        finally:
            over.set()
            await task
        await self.come_up()

    async def _kill_at(self, moments: Sequence[int], over: asyncio.Event) -> None:
        coming: list[asyncio.Task[None]] = []
        kinds = ["server", "worker", "store"] * len(moments)
        for moment, kind in zip(moments, kinds, strict=False):
            while len(self.scene.lines("begin")) < moment and not await self._passes(0.02, over):
                pass
            if kind == "store":
                self.scene.server.kill()
                self.kills["store kill"] += 1
                await self.scene.server.start()
            else:
                member = self.dice.choice(self.servers if kind == "server" else self.workers)
                self.kills[f"{kind} kill"] += await self._harm(member, "kill")
                coming.append(asyncio.create_task(member.comes_up()))
        over.set()
        await asyncio.gather(*coming)

    async def _keep_killing(self, name: str, member: Member, life: float, over: asyncio.Event) -> None:
        while not await self._passes(self.dice.uniform(0, 2 * life + member.took), over):
            way = self.dice.choice(self.ways)
            if await self._harm(member, way):
                self.kills[f"{name} {way}"] += 1
            await member.comes_up()

    async def _harm(self, member: Member, way: str) -> bool:
        """Harm a process; tell whether it was there to be harmed."""
        if not member.command or not member.alive:
            return False
        if way == "sleep":
            member.command.signal(signal.SIGSTOP)
            await asyncio.sleep(self.dice.uniform(0, 2))
            member.command.signal(signal.SIGCONT)
        elif way == "stop":
            await member.stops()
        else:
            member.command.kill()
        return True

    async def _keep_killing_the_store(self, life: float, over: asyncio.Event) -> None:
        while not await self._passes(self.dice.uniform(0, 2 * life + self._took()), over):
            self.scene.server.kill()
            self.kills["store kill"] += 1
            await self._passes(self.dice.uniform(0, 1), over)
            await self.scene.server.start()

    def _took(self) -> float:
        return sum(worker.took for worker in self.workers) / len(self.workers)

    @staticmethod
    async def _passes(seconds: float, over: asyncio.Event) -> bool:
        """Wait; tell whether the fire is over."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await over.wait()
        return over.is_set()

    async def ask(self, call: Callable[[Client], Awaitable[T]]) -> T:
        """Ask one server after the other until one answers; what is not answered may have been done.

        `longest_wait` is how long a call took at most that was not answered.
        """

        async def once() -> list[T]:
            for server in self.dice.sample(self.servers, len(self.servers)):
                if server.address:
                    begun = time.monotonic()
                    try:
                        async with Client(server.address) as client:
                            return [await call(client)]
                    except (ServerUnreachable, StoreError):
                        self.longest_wait = max(self.longest_wait, time.monotonic() - begun)
            return []

        [answer] = await eventually(once, patience=300)
        return answer

    async def leave(self) -> None:
        """Stop all in order, and see that none of them, nor one that was killed, met with a bug."""
        await asyncio.gather(*(member.stops() for member in (*self.workers, *self.servers)))
        for command in self.scene.commands:
            said = [part for part in command.errors.split("\n20") if "Traceback" in part]
            assert [part for part in said if "a handler raised" not in part] == []


async def moods(address: Address, dice: Random) -> None:
    """Let a receiver hang for a while and come back, again and again, until cancelled; then it is back."""
    try:
        while True:
            await asyncio.sleep(dice.uniform(0, 2))
            address.silent = True
            await asyncio.sleep(dice.uniform(0, 1))
            come_back(address)
    finally:
        come_back(address)


def come_back(address: Address) -> None:
    """End the silence: whoever is kept waiting loses the connection."""
    address.silent = False
    for task in list(address.serving):
        task.cancel()
