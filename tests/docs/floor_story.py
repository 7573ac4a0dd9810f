"""The small stories of docs/floor.md, told line by line and played on a real store with a clock of their own.

floor: 4 slots, medium 2, slow 1, borrow
 0 s  ada submits A                      (or: A, slow; A, 5 s)
 0 s  running: A (fast, 30 s)            (the class whose units it holds, and how long it may run)
 1 s  bob opens B                        (an interactive session; or: bob opens B: denied)
 5 s  A is told to stop: cut             (every order to a worker has to be told, at its moment)
 5 s  A may run 10 s
 6 s  A has stopped                      (the worker confirms; "A ends" is an end of its own)
 6 s  waiting: C, D                      (or: nobody)
 6 s  levels: 2 of 4, 1 of 2, 0 of 1     (units taken, and how many there are)
 7 s  C is shortened to 3 s
 8 s  a worker joins with 2 slots
 9 s  the first worker leaves
"""

import re
from typing import Literal

from maitred.core.classes import DurationClass, Limit
from maitred.core.job import Finish, Lower, Message, Order, Put, Shift, Start, Stop, Submitter
from maitred.core.settings import SECOND, Settings
from maitred.store.port import Store, Stores
from tests.conftest import Clock

CAPS = {"fast": 3, "medium": 10, "slow": 30}
POLICIES: dict[str, Literal["borrow", "squeeze"]] = {"borrow": "borrow", "squeeze": "squeeze"}
NEED = "handler:work"
LEASE = 3_600 * SECOND


class FloorStory:
    """One queue, its workers, and what happens on the floor."""

    def __init__(self, stores: Stores, queue: str, clock: Clock) -> None:
        self._store: Store = stores.queue(queue)
        self._clock = clock
        self._start = clock.now
        self._workers: list[str] = []
        self._held: dict[str, tuple[str, Start]] = {}
        self._over: dict[str, int] = {}
        self._codes: dict[str, str] = {}
        self._untold: list[str] = []

    async def play(self, text: str) -> None:
        """Play all lines; an assertion fails at the first that is not true, or that is missing."""
        first, *lines = text.splitlines()
        await self._open(first)
        for line in lines:
            told = re.fullmatch(r"\s*([\d.]+) s\s+(.*)", line)
            assert told, f"this line cannot be played: {line}"
            await self._until(float(told[1]))
            await self._tell(told[2])
        self._all_told()
        assert await self._store.check() == []

    async def _open(self, line: str) -> None:
        floor = re.fullmatch(r"floor: (\d+) slots?(.*?)(?:, (borrow|squeeze))?", line)
        assert floor, f"a story begins with its floor, not with: {line}"
        limits = dict(re.findall(r", (\w+) (\d+)", floor[2]))
        classes = [DurationClass("fast", CAPS["fast"] * SECOND)]
        classes += [
            DurationClass(name, CAPS[name] * SECOND, Limit(int(limit))) for name, limit in limits.items()
        ]
        policy = POLICIES[floor[3] or "borrow"]
        await self._store.configure(Settings(classes=tuple(classes), elastic=policy, lease=LEASE))
        await self._join(int(floor[1]))

    async def _until(self, seconds: float) -> None:
        """Let time pass, with a tick at each moment that the queue asks for."""
        while True:
            asked = (await self._store.tick()).next_at
            await self._hear()
            then = self._start + round(seconds * SECOND)
            if then <= self._clock.now:
                return
            self._all_told()
            self._clock.now = min(then, asked) if asked else then
            late = [name for name, over in self._over.items() if over < self._clock.now]
            assert not late, (
                f"at {seconds:g} s the time of {late} is long over, and the story does not end them"
            )

    def _all_told(self) -> None:
        now = (self._clock.now - self._start) / SECOND
        assert not self._untold, f"at {now:g} s the story does not tell: {self._untold}"

    async def _tell(self, what: str) -> None:
        if what in self._untold:
            self._untold.remove(what)
        elif found := re.fullmatch(r"(running|waiting|levels): (.*)", what):
            shown = {"running": self._running, "waiting": self._waiting, "levels": self._levels}[found[1]]
            assert await shown() == found[2]
        else:
            self._all_told()
            await self._do(what)
            await self._hear()

    async def _do(self, what: str) -> None:
        if found := re.fullmatch(r"(\w+) submits (\w+)(?:, (\w+)( s)?)?", what):
            await self._submit(found[1], found[2], found[3], in_seconds=bool(found[4]))
        elif found := re.fullmatch(r"(\w+) opens (\w+)(: denied)?", what):
            admission = await self._store.admit(Order(found[2], Submitter("user", found[1]), NEED, b""))
            assert bool(admission.denied) == bool(found[3]), admission
        elif found := re.fullmatch(r"(\w+) (ends|has stopped)", what):
            await self._end(found[1], stopped=found[2] == "has stopped")
        elif found := re.fullmatch(r"(\w+) is shortened to (\d+) s", what):
            await self._store.shorten(found[1], int(found[2]) * SECOND)
        elif found := re.fullmatch(r"a worker joins with (\d+) slots?", what):
            await self._join(int(found[1]))
        elif what == "the first worker leaves":
            self._begin(self._workers[0], await self._store.leave(self._workers[0]))
        else:
            raise AssertionError(f"this did not happen, or cannot be played: {what}")

    async def _submit(self, who: str, name: str, asked: str | None, *, in_seconds: bool) -> None:
        duration = int(asked) if asked and in_seconds else 0
        levels = list(CAPS)
        level = levels.index(asked) + 1 if asked and not in_seconds else 1
        if duration:
            level = next(at for at, cap in enumerate(CAPS.values(), 1) if duration <= cap)
        order = Order(
            name,
            Submitter("user", who),
            NEED,
            b"",
            level=level,
            elastic=asked is None,
            duration=duration * SECOND,
        )
        [answer] = await self._store.put([order])
        assert isinstance(answer, Put), answer

    async def _end(self, name: str, *, stopped: bool) -> None:
        worker, start = self._held.pop(name)
        self._over.pop(name, None)
        code = self._codes.pop(name, "")
        assert bool(code) == stopped, f"{name} was {'not ' if stopped else ''}told to stop"
        self._begin(worker, await self._store.finish(worker, [Finish(start.lease, code)]))

    async def _join(self, slots: int) -> None:
        worker = f"worker-{len(self._workers)}"
        self._workers.append(worker)
        self._begin(worker, await self._store.join(worker, slots, [NEED]))

    def _begin(self, worker: str, shift: Shift) -> None:
        assert not shift.lost
        for start in shift.starts:
            self._take(worker, start)

    def _take(self, worker: str, start: Start) -> None:
        self._held[start.id] = worker, start
        self._over[start.id] = start.start + start.duration

    async def _hear(self) -> None:
        """Read what the workers were told: starts are seen in `running`, the rest has a line of its own."""
        for worker in self._workers:
            for message in await self._store.park(worker, 0.01):
                if isinstance(message, Start):
                    self._take(worker, message)
                elif isinstance(message, Stop | Lower):
                    self._note(message)

    def _note(self, message: Message) -> None:
        if isinstance(message, Stop):
            name = self._name(message)
            self._codes[name] = message.code
            self._over.pop(name)
            self._untold.append(f"{name} is told to stop: {message.code}")
        elif isinstance(message, Lower):
            name = self._name(message)
            self._over[name] = self._held[name][1].start + message.duration
            self._untold.append(f"{name} may run {message.duration / SECOND:g} s")

    def _name(self, message: Stop | Lower) -> str:
        return next(name for name, (_, start) in self._held.items() if start.lease == message.lease)

    async def _running(self) -> str:
        names = [*CAPS]
        shown = [
            f"{view.job.id} ({names[(view.holding or 1) - 1]}, {(view.granted or 0) / SECOND:g} s)"
            for view in sorted(await self._store.running(), key=lambda view: view.job.id)
        ]
        return ", ".join(shown) or "nobody"

    async def _waiting(self) -> str:
        return ", ".join(view.job.id for view in (await self._store.line(None, 100)).views) or "nobody"

    async def _levels(self) -> str:
        status = await self._store.status()
        return ", ".join(f"{used} of {limit}" for used, limit in zip(status.used, status.limits, strict=True))
