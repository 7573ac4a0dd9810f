"""Random faults with a seed: workers and servers are killed, put to sleep, woken and replaced."""

import asyncio
import signal
import time
from random import Random

from tests.faults.scene import Command, Scene
from tests.waiting import eventually


class Turmoil:
    """Does harm to a scene's processes; `harm` counts what was done."""

    def __init__(self, scene: Scene, dice: Random) -> None:
        self.scene, self.dice = scene, dice
        self.workers: list[Command] = []
        self.harm: dict[str, int] = {}

    @staticmethod
    def clock() -> float:
        return time.monotonic()

    def count(self, what: str) -> None:
        self.harm[what] = self.harm.get(what, 0) + 1

    async def keep_killing_workers(
        self, count: int, slots: int, until: float, url: str | None = None
    ) -> None:
        """Keep so many workers up, and harm a random one again and again, at least once; then all are up."""
        self.workers = await asyncio.gather(*(self._comes_up(slots, url) for _ in range(count)))
        # On a busy machine the time may be over before the first are up.
        while self.clock() < until or not self.harm:
            # The moments between the harms are what is random here.
            await asyncio.sleep(self.dice.uniform(0.0, 0.6))
            at = self.dice.randrange(count)
            if await self._harm(self.workers[at]):
                self.workers[at] = await self._comes_up(slots, url)
        for at, worker in enumerate(self.workers):
            if worker.process.poll() is not None:
                self.workers[at] = await self._comes_up(slots, url)

    async def _comes_up(self, slots: int, url: str | None) -> Command:
        """Start a worker, and again if it found no store and ended with a word about it."""
        while True:
            worker = self.scene.worker(slots, url)

            async def started(worker: Command = worker) -> bool:
                return worker.process.poll() is not None or "Working" in worker.said.read_text()

            await eventually(started)
            if worker.process.poll() is None:
                return worker
            assert "the store" in worker.errors, worker.errors
            self.count("no store at the start")

    async def _harm(self, worker: Command) -> bool:
        """Harm a worker in one of several ways; tell whether it is gone."""
        if worker.process.poll() is not None:
            assert "the store" in worker.errors, worker.errors
            return True
        way = self.dice.choice(["kill", "kill", "sleep", "sleep and kill", "stop"])
        self.count(way)
        if "sleep" in way:
            worker.signal(signal.SIGSTOP)
            await asyncio.sleep(self.dice.uniform(0.0, 1.6))
            worker.signal(signal.SIGCONT)
        if "kill" in way:
            if way == "kill" and self.dice.random() < 0.5:
                worker.signal(signal.SIGSTOP)
            worker.kill()
            return True
        if way == "stop":
            await self._stop(worker)
            return True
        return False

    async def _stop(self, worker: Command) -> None:
        worker.signal(signal.SIGTERM)
        assert await worker.ends() == 0 or "the store" in worker.errors, worker.errors

    async def stop_workers(self) -> None:
        """Stop all that run, in order."""
        await asyncio.gather(*(self._stop(worker) for worker in self.workers))
