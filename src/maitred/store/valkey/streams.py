"""Reading many streams at once: those in which nothing happens share one read, and cost hardly more than one.

A stream that is asked for is read at once, with all that are asked for in the same turn. One that was silent
for a while moves to the common read, which blocks for all of them and is begun anew every few seconds. A
stream in which much happens does not get there, so that the long common read is not begun anew for each of
its entries.

All streams have to be on one server, and each has one reader.
"""

import asyncio
import time
from collections.abc import Coroutine, Sequence
from typing import Any

from maitred.errors import StoreUnavailable
from maitred.store.valkey.board import Board
from maitred.store.valkey.connection import ANSWER_PATIENCE, Connection, ReplyError

COUNT = 256
# For how long the common read blocks, and after which silence a stream moves there; up to then it is read
# with those that came with it, for longer than both together.
COMMON = 2.0
SILENCE = 1.5
FRESH = 5.0
# How many streams are read at once before they were silent, and how many connections are kept for that.
TOGETHER = 64
SPARE = 8
# How long a stream is read on for a reader that has not come back yet.
LINGER = 5.0
# Whoever waits for less than this has to read alone: its silence would be proved too late.
LEAST = 2 * COMMON
_LOOK_EVERY = 0.1


class _Wanted:
    """What somebody waits for: entries of a stream after this one.

    It is wanted since a moment and until another. Up to `silent` it is proved that there are none: that is
    when the last read was sent that gave none.
    """

    def __init__(self, after: str) -> None:
        self.after = after
        self.since = time.monotonic()
        self.until = self.silent = 0.0
        self.common = False
        self.found: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()

    async def wait(self, timeout: float) -> None:
        """Wait until something is found, or so long and until it is proved that there was nothing before."""
        asked = now = time.monotonic()
        self.until = asked + timeout + LINGER
        while not self.found.done() and (now < asked + timeout or self.silent < asked):
            await asyncio.wait([self.found], timeout=max(_LOOK_EVERY, asked + timeout - now))
            now = time.monotonic()
            self.until = max(self.until, now + LINGER)

    def fail(self, error: Exception) -> None:
        """Tell whoever waits that there will be no answer; it may be that nobody does at the moment."""
        if not self.found.done():
            self.found.set_exception(type(error)(*error.args))
            self.found.exception()


class Streams:
    """The streams of one server that are read in this process."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._wanted: dict[str, _Wanted] = {}
        self._fresh: list[str] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._common: asyncio.Task[None] | None = None
        self._spare: list[Connection] = []

    async def read(self, key: str, after: str, timeout: float) -> list[Any]:
        """Wait for entries after this one; `StoreUnavailable` or `ReplyError` where that cannot be."""
        wanted = self._wanted.get(key)
        if wanted is None or wanted.after != after:
            wanted = self._wanted[key] = _Wanted(after)
            self._ask_for(key)
        await wanted.wait(timeout)
        if not wanted.found.done():
            # It is read on for a reader that comes back with the same question.
            return []
        if self._wanted.get(key) is wanted:
            del self._wanted[key]
        return wanted.found.result()

    def close(self) -> None:
        """Hang up."""
        for task in self._tasks:
            task.cancel()
        for connection in self._spare:
            connection.close()
        self._spare.clear()

    def _ask_for(self, key: str) -> None:
        self._fresh.append(key)
        if len(self._fresh) == 1:
            asyncio.get_running_loop().call_soon(self._begin)

    def _begin(self) -> None:
        """Read what was asked for in this turn, and what is silent with all others that are."""
        fresh, self._fresh = self._fresh, []
        for first in range(0, len(fresh), TOGETHER):
            self._start(self._read_fresh(fresh[first : first + TOGETHER]))
        if self._common is None or self._common.done():
            self._common = self._start(self._read_common())

    def _start(self, reading: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.create_task(reading)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _read_fresh(self, keys: Sequence[str]) -> None:
        """Read streams until one of them has something; the others are asked for again, if that is needed."""
        wanted = await self._read(keys, FRESH)
        for key, each in wanted.items():
            if self._wanted.get(key) is each and not each.common and not each.found.done():
                self._ask_for(key)

    async def _read_common(self) -> None:
        """Read all that is silent, for as long as anybody wants to."""
        while self._wanted:
            now = time.monotonic()
            for key, each in list(self._wanted.items()):
                if each.until < now:
                    del self._wanted[key]
                each.common = each.common or now - each.since > SILENCE
            silent = [key for key, each in self._wanted.items() if each.common and not each.found.done()]
            if silent:
                await self._read(silent, COMMON)
            else:
                await asyncio.sleep(SILENCE)

    async def _read(self, keys: Sequence[str], block: float) -> dict[str, _Wanted]:
        """Wait until one of these streams has what is wanted of it; give what was wanted of each."""
        wanted = {key: self._wanted[key] for key in keys if key in self._wanted}
        if not wanted:
            return wanted
        connection = self._spare.pop() if self._spare else self._board.parked(keys[0])
        afters = (each.after for each in wanted.values())
        begun = time.monotonic()
        command = ("XREAD", "COUNT", COUNT, "BLOCK", round(block * 1000), "STREAMS", *wanted, *afters)
        try:
            async with asyncio.timeout(block + ANSWER_PATIENCE):
                answer = await connection.call(*command)
        except (StoreUnavailable, ReplyError, TimeoutError) as error:
            connection.close()
            silent = StoreUnavailable("the store does not answer: it was silent for too long")
            for key, each in wanted.items():
                each.fail(silent if isinstance(error, TimeoutError) else error)
                if self._wanted.get(key) is each:
                    del self._wanted[key]
            return {}
        except BaseException:
            connection.close()
            raise
        self._give_back(connection)
        for each in wanted.values():
            each.silent = max(each.silent, begun)
        for key, entries in answer or ():
            found = wanted[key.decode()].found
            if not found.done():
                found.set_result(entries)
        return wanted

    def _give_back(self, connection: Connection) -> None:
        if len(self._spare) < SPARE:
            self._spare.append(connection)
        else:
            connection.close()
