"""Reading many streams at once: those in which nothing happens share one read, and cost hardly more than one.

A stream that is asked for is read at once, with all that are asked for in the same turn. One that was silent
for a while moves to the common read, which blocks for all of them and is begun anew every few seconds. A
stream in which much happens does not get there, so that the long common read is not begun anew for each of
its entries.

All streams have to be on one server.
"""

import asyncio
import time
from collections.abc import Coroutine, Sequence
from typing import Any
from zlib import crc32

from maitred.errors import StoreUnavailable
from maitred.store.valkey.board import Board
from maitred.store.valkey.connection import ANSWER_PATIENCE, Connection, ReplyError

COUNT = 256
# For how long the common read blocks, and after which silence a stream moves there; up to then it is read
# with those that came with it, for longer than both together.
COMMON = 2.0
SILENCE = 1.5
FRESH = 5.0
# How many groups of streams there are, and how many connections each of them keeps for the next read.
GROUPS = 8
SPARE = 2
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

    def __init__(self, key: str, after: str) -> None:
        self.key, self.after = key, after
        # Its place in a read, where the same stream may be wanted from two entries on.
        self.order = (key, [int(part) for part in after.split("-")])
        self.since = time.monotonic()
        self.until = self.silent = 0.0
        self.common = False
        self.found: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()

    async def wait(self, timeout: float) -> None:
        """Wait until something is found, or so long and until it is proved that there was nothing before."""
        asked = now = time.monotonic()
        while not self.found.done() and (now < asked + timeout or self.silent < asked):
            self.until = max(now, asked + timeout) + LINGER
            await asyncio.wait([self.found], timeout=max(_LOOK_EVERY, asked + timeout - now))
            now = time.monotonic()

    def fail(self, error: Exception) -> None:
        """Tell whoever waits that there will be no answer; it may be that nobody does at the moment."""
        if not self.found.done():
            self.found.set_exception(type(error)(*error.args))
            self.found.exception()


class Streams:
    """All streams that are read in this process, in a few groups: an entry begins the read of one anew."""

    def __init__(self, board: Board) -> None:
        self._groups = [_Group(board) for _ in range(GROUPS)]

    async def read(self, key: str, after: str, timeout: float) -> list[Any]:
        """Wait for entries after this one; `StoreUnavailable` or `ReplyError` where that cannot be."""
        return await self._groups[crc32(key.encode()) % GROUPS].read(key, after, timeout)

    def close(self) -> None:
        """Hang up."""
        for group in self._groups:
            group.close()


class _Group:
    """Some streams of one server."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._wanted: dict[tuple[str, str], _Wanted] = {}
        self._fresh: list[_Wanted] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._common: asyncio.Task[None] | None = None
        self._spare: list[Connection] = []
        self._lent: set[Connection] = set()

    async def read(self, key: str, after: str, timeout: float) -> list[Any]:
        """Wait for entries after this one, for all who ask for the same."""
        wanted = self._wanted.get((key, after))
        if wanted is None:
            wanted = self._wanted[key, after] = _Wanted(key, after)
            self._ask_for(wanted)
        await wanted.wait(timeout)
        if not wanted.found.done():
            # It is read on for a reader that comes back with the same question.
            return []
        self._forget(wanted)
        return wanted.found.result()

    def close(self) -> None:
        """Hang up."""
        for task in self._tasks:
            task.cancel()
        for connection in (*self._spare, *self._lent):
            connection.close()
        self._spare.clear()

    def _ask_for(self, wanted: _Wanted) -> None:
        self._fresh.append(wanted)
        if len(self._fresh) == 1:
            asyncio.get_running_loop().call_soon(self._begin)

    def _forget(self, wanted: _Wanted) -> None:
        if self._wanted.get((wanted.key, wanted.after)) is wanted:
            del self._wanted[wanted.key, wanted.after]

    def _begin(self) -> None:
        """Read what was asked for in this turn, and what is silent with all others that are."""
        fresh, self._fresh = self._fresh, []
        self._start(self._read_fresh(fresh))
        if self._common is None or self._common.done():
            self._common = self._start(self._read_common())

    def _start(self, reading: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.create_task(reading)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _read_fresh(self, wanted: Sequence[_Wanted]) -> None:
        """Read streams until one of them has something; the others are asked for again, if that is needed."""
        await self._read(wanted, FRESH)
        for each in wanted:
            if not each.common and not each.found.done() and each.until > time.monotonic():
                self._ask_for(each)

    async def _read_common(self) -> None:
        """Read all that is silent, for as long as anybody wants to."""
        while self._wanted:
            now = time.monotonic()
            for each in list(self._wanted.values()):
                if each.until < now:
                    self._forget(each)
                each.common = each.common or now - each.since > SILENCE
            silent = [each for each in self._wanted.values() if each.common and not each.found.done()]
            if silent:
                await self._read(silent, COMMON)
            else:
                await asyncio.sleep(SILENCE)

    async def _read(self, wanted: Sequence[_Wanted], block: float) -> None:
        """Wait until one of these streams has what is wanted of it, but only for so many seconds."""
        begun, ordered = time.monotonic(), sorted(wanted, key=lambda each: each.order)
        streams = [*(each.key for each in ordered), *(each.after for each in ordered)]
        command = ("XREAD", "COUNT", COUNT, "BLOCK", round(block * 1000), "STREAMS", *streams)
        try:
            answer = await self._call(command, block + ANSWER_PATIENCE)
        except (StoreUnavailable, ReplyError) as error:
            for each in wanted:
                each.fail(error)
                self._forget(each)
            return
        # Of a stream that is wanted twice, whoever wants more of it has the first answer.
        answers: dict[str, list[list[Any]]] = {}
        for key, entries in answer or ():
            answers.setdefault(key.decode(), []).append(entries)
        for each in ordered:
            if not (found := answers.get(each.key)):
                each.silent = max(each.silent, begun)
            elif (entries := found.pop(0)) and not each.found.done():
                each.found.set_result(entries)

    async def _call(self, command: tuple[Any, ...], patience: float) -> Any:
        """Send a command that blocks, on a connection that nobody else uses meanwhile."""
        connection = self._spare.pop() if self._spare else self._board.parked(command[-1])
        self._lent.add(connection)
        try:
            async with asyncio.timeout(patience):
                answer = await connection.call(*command)
        except BaseException as error:
            connection.close()
            if isinstance(error, TimeoutError):
                raise StoreUnavailable("the store does not answer: it was silent for too long") from None
            raise
        finally:
            self._lent.discard(connection)
        if len(self._spare) < SPARE:
            self._spare.append(connection)
        else:
            connection.close()
        return answer
