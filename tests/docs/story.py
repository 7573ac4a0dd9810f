"""The small stories of docs/line.md, told line by line and played on a real store with a clock of their own.

settings: order = "oldest-first"
 0 s  ada submits A, delay 60
 0 s  A is released                      (or: delayed, deleted; cannot be released, cannot be delayed)
 5 s  line: B, A (due at 60 s)
 5 s  a slot is free: B starts           (or: nobody starts)
"""

import re
import tomllib
from itertools import count

from maitred.config import QueueConfig
from maitred.core.ids import job_id
from maitred.core.job import COMMAND, Band, Finish, Order, Put, Submitter
from maitred.errors import NotMovable
from maitred.store.port import Store, Stores
from tests.conftest import Clock

_BANDS = {"immediate": Band.IMMEDIATE, "bulk": Band.BULK}


class Story:
    """One queue and what happens to it."""

    def __init__(self, stores: Stores, queue: str, clock: Clock) -> None:
        self._store: Store = stores.queue(queue)
        self._clock = clock
        self._start = clock.now
        self._names: dict[str, str] = {}
        self._workers = count()

    async def play(self, text: str) -> None:
        """Play all lines; an assertion fails at the first that is not true."""
        settings = "\n".join(re.findall(r"^settings: (.*)$", text, re.MULTILINE))
        await self._store.configure(QueueConfig.model_validate(tomllib.loads(settings)).settings())
        for line in text.splitlines():
            told = re.fullmatch(r"\s*(\d+) s\s+(.*)", line)
            assert told or line.startswith("settings: "), f"this line cannot be played: {line}"
            if told:
                self._clock.at(int(told[1]))
                await self._tell(told[2])

    async def _tell(self, what: str) -> None:
        if found := re.fullmatch(r"(\w+) submits (\w+)(.*)", what):
            await self._submit(found[1], found[2], found[3])
        elif found := re.fullmatch(r"(\w+) (is|cannot be) (released|delayed|deleted)", what):
            await self._move(self._id(found[1]), found[3], refused=found[2] == "cannot be")
        elif found := re.fullmatch(r"line: (.*)", what):
            assert await self._line() == found[1]
        elif found := re.fullmatch(r"a slot is free: (\w+) starts", what):
            assert await self._seat() == found[1]
        else:
            raise AssertionError(f"this cannot be played: {what}")

    async def _submit(self, who: str, name: str, how: str) -> None:
        numbers = {word: int(number) for word, number in re.findall(r", (delay|priority) (\d+)", how)}
        bands = [_BANDS[word] for word in re.findall(r", (immediate|bulk)", how)]
        assert not re.sub(r", ((delay|priority) \d+|immediate|bulk)", "", how), (
            f"this cannot be submitted: {how}"
        )
        self._names[self._id(name)] = name
        order = Order(
            id=self._id(name),
            submitter=Submitter("user", who),
            need=COMMAND,
            body=b"{}",
            band=bands[0] if bands else Band.SCHEDULED,
            priority=numbers.get("priority", 5),
            delay=numbers["delay"] * 1_000_000 if "delay" in numbers else None,
        )
        [answer] = await self._store.put([order])
        assert isinstance(answer, Put), answer

    async def _move(self, id: str, verb: str, *, refused: bool) -> None:
        move = {
            "released": self._store.release,
            "delayed": self._store.delay,
            "deleted": self._store.remove,
        }[verb]
        try:
            await move(id)
        except NotMovable:
            assert refused, f"it could not be {verb}"
        else:
            assert not refused, f"it could be {verb}"

    async def _line(self) -> str:
        page = await self._store.line(None, 100)
        standing = []
        for view in page.views:
            later = view.release is not None and view.release > view.now
            due = f" (due at {((view.release or 0) - self._start) // 1_000_000} s)" if later else ""
            standing.append(self._names[view.job.id] + due)
        return ", ".join(standing) or "empty"

    async def _seat(self) -> str:
        """Let a slot take what it may, and end that job at once, so that no lease is lost meanwhile."""
        worker = f"worker-{next(self._workers)}"
        shift = await self._store.join(worker, 1, [COMMAND])
        await self._store.leave(worker)
        if not shift.starts:
            return "nobody"
        [start] = shift.starts
        await self._store.finish(worker, [Finish(start.lease)])
        return self._names[start.id]

    @staticmethod
    def _id(name: str) -> str:
        return job_id(name)
