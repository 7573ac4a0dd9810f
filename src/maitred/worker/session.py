"""Sessions: a program on a terminal in a room of its own, and somebody far away who types to it.

What the terminal shows is said as output, what is typed comes through the worker's inbox, and both are kept
within a window, as `maitred.wire.relay` tells. The worker keeps a session to its limits, and warns before it
ends one: nobody typed for too long, its time is over, its slot is needed, or the worker itself is stopped.
"""

import asyncio
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from maitred.core.settings import SECOND, Settings
from maitred.service.fetch import FetchFailed
from maitred.wire.codec import encode_json
from maitred.wire.relay import Relayed, read_relayed, window
from maitred.worker.command import why_it_failed
from maitred.worker.outcome import TIME_LIMIT, Outcome, completed, failed, interrupted
from maitred.worker.program import Ended
from maitred.worker.room import Room
from maitred.worker.run import Run
from maitred.worker.sandbox import Sandbox
from maitred.worker.terminal import Terminal

IDLE, HALTED = "idle", "halted"
# How long before a limit a client is warned, in seconds; of a short limit, a tenth of it.
LEAD = 30.0
NEVER = float("inf")

STOPPING = "its worker is being stopped"
_WHY = {
    HALTED: "a waiting job needs its slot",
    "cancelled": "it was cancelled",
    "deleted": "it was deleted",
    "abandoned": "nobody came back to it",
}


class Limit(NamedTuple):
    """A moment of the local clock at which a session ends, and why; its client is warned so long before."""

    at: float
    lead: float
    code: str
    text: str


async def run_session(
    run: Run, spec: Mapping[str, Any], sandbox: Sandbox, settings: Settings, stopping: asyncio.Event
) -> Outcome:
    """Run a session to its end. Cancelling this stops it; `stopping` is set when the worker is to end."""
    try:
        async with sandbox.room(spec.get("files")) as room:
            return await Session(run, settings, stopping).hold(room, spec)
    except FetchFailed as error:
        return failed("files", f"a file could not be had: {error}")
    except (OSError, ValueError) as error:
        return failed("command", f"it could not be started: {error}")


class Session:
    """One session while it goes on: who has it, and how much each side has had of the other."""

    def __init__(self, run: Run, settings: Settings, stopping: asyncio.Event) -> None:
        self._run, self._stopping = run, stopping
        self._idle = settings.interactive_idle / SECOND
        self._kill_after, self._grace = settings.kill_after / SECOND, settings.grace / SECOND
        self._window = window(settings.output_limit)
        self._terminal: Terminal | None = None
        self._client = b""
        self._clients: set[bytes] = set()
        # Bytes that the terminal has shown; of these before this client came, and that it has had since.
        self._shown = self._before = self._had = 0
        # Bytes that this client has typed, and of which it was told that the program took them.
        self._typed = self._told = 0
        self._typed_at = time.monotonic()
        self._stop_at = NEVER
        self._warned: dict[str, Limit] = {}

    async def hold(self, room: Room, spec: Mapping[str, Any]) -> Outcome:
        """Run the program to its end, or to the session's."""
        size = spec["terminal"]["cols"], spec["terminal"]["rows"]
        starting = asyncio.ensure_future(room.run_terminal(spec["command"], size, self._show))
        stopped = False
        try:
            terminal = await asyncio.shield(starting)
        except asyncio.CancelledError:
            # Only what has started can be ended with all that it starts itself.
            terminal, stopped = await starting, True
        self._terminal = terminal
        terminal.on_taken = self._tell_taken
        waiting, limits = asyncio.create_task(terminal.wait()), asyncio.create_task(self._keep_limits())
        hearing = asyncio.create_task(self._hear())
        try:
            if not stopped:
                await asyncio.wait([waiting, limits, hearing], return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            stopped = True
        if stopped:
            self._say_why()
            # A task that is cancelled before it has begun would end nothing.
            await asyncio.sleep(0)
        over = limits.result() if limits.done() else None
        if not waiting.done():
            waiting.cancel()
        ended = await waiting
        for task in (limits, hearing):
            task.cancel()
        await asyncio.wait([limits, hearing])
        if not hearing.cancelled():
            hearing.result()
        return _outcome(ended, over)

    # ---------------------------------------------------------------- what the terminal shows

    def _show(self, _stream: str, data: bytes) -> None:
        self._run.say("tty", data)
        self._shown += len(data)
        self._pace()

    def _pace(self) -> None:
        """Let the program wait while its client has not had what it shows."""
        if self._terminal:
            self._terminal.read_on(self._shown - self._before - self._had < self._window)

    def _control(self, **said: object) -> None:
        self._run.say("control", encode_json(said))

    # ---------------------------------------------------------------- what the client does

    async def _hear(self) -> None:
        while self._terminal:
            typed = await self._run.typed()
            relayed = read_relayed(typed.data)
            if relayed.client != self._client:
                self._meet(relayed.client)
            if relayed.client == self._client:
                self._take(self._terminal, relayed)
                if typed.size:
                    self._terminal.resize(*typed.size)

    def _meet(self, client: bytes) -> None:
        """Let whoever is new have the session; who had it before is told who has it now."""
        if client not in self._clients:
            self._clients.add(client)
            self._client, self._before = client, self._shown
            self._had = self._typed = self._told = 0
        self._control(client=self._client.hex(), at=self._before)
        for limit in self._warned.values():
            self._warn(limit)

    def _take(self, terminal: Terminal, relayed: Relayed) -> None:
        self._had = max(self._had, relayed.had)
        self._pace()
        # What was passed on twice, since an answer was lost, is typed once.
        if data := relayed.data[max(0, self._typed - relayed.before) :]:
            self._typed_at = time.monotonic()
            self._warned.pop(IDLE, None)
            self._typed = relayed.before + len(relayed.data)
            terminal.write(data)

    def _tell_taken(self) -> None:
        """Tell the client how much the program has taken, when that lets it type on."""
        unread = self._terminal.unread if self._terminal else 0
        taken = max(0, self._typed - unread)
        if taken - self._told >= max(1, self._window // 4):
            self._told = taken
            self._control(taken=taken)

    # ---------------------------------------------------------------- limits

    async def _keep_limits(self) -> Limit:
        """Warn before each limit; give the one that is reached. The hard one is kept by the worker."""
        while True:
            now = time.monotonic()
            if self._stopping.is_set() and self._stop_at == NEVER:
                self._stop_at = now + max(0.0, self._grace - 2 * self._kill_after)
            limits = self._limits()
            for limit in limits:
                if now >= limit.at and limit.code != TIME_LIMIT:
                    return limit
                if now >= limit.at - limit.lead and self._warned.get(limit.code) != limit:
                    self._warned[limit.code] = limit
                    self._warn(limit)
            moments = [moment for limit in limits for moment in (limit.at - limit.lead, limit.at)]
            await self._until(min((moment for moment in moments if moment > now), default=NEVER))

    def _limits(self) -> list[Limit]:
        idle, cap = self._idle, self._run.limit / SECOND
        return [
            Limit(self._typed_at + idle, min(LEAD, idle / 10), IDLE, f"nobody has typed for {idle:g} s"),
            Limit(self._run.at, min(LEAD, cap / 10), TIME_LIMIT, f"a session lasts at most {cap:g} s"),
            Limit(self._stop_at, NEVER, HALTED, STOPPING),
        ]

    async def _until(self, moment: float) -> None:
        """Wait for a moment, or until the worker is to stop."""
        pause = moment - time.monotonic()
        if self._stop_at < NEVER:
            await asyncio.sleep(pause)
            return
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait([stopping], timeout=None if pause == NEVER else max(0.0, pause))
        finally:
            stopping.cancel()

    def _warn(self, limit: Limit) -> None:
        left = max(0.0, limit.at - time.monotonic())
        self._halting(left, limit.code, limit.text)

    def _say_why(self) -> None:
        """Tell the client why its session is being stopped; of a time limit it was warned."""
        if self._run.why is None:
            self._halting(self._kill_after, HALTED, STOPPING)
        elif (code := self._run.why.code) != TIME_LIMIT:
            self._halting(self._kill_after, code, _WHY.get(code, STOPPING))

    def _halting(self, seconds: float, code: str, text: str) -> None:
        self._control(status="halting", seconds=round(seconds, 3), code=code, reason=text)


def _outcome(ended: Ended, over: Limit | None) -> Outcome:
    """Give what became of a session; of one that the worker stopped, the worker tells why."""
    shown: dict[str, Any] = {"exit": ended.exit}
    if ended.hit:
        shown["hit"] = ended.hit
    if ended.stopped:
        return failed(over.code, over.text, shown) if over else interrupted(shown)
    if ended.exit or ended.killed:
        return failed(*why_it_failed(ended), shown)
    return completed(shown)
