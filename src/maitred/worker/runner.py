"""How jobs are run: the handler or command is called, and its end made into an outcome."""

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

import structlog

from maitred.core.job import COMMAND, Start
from maitred.core.settings import SECOND, Settings
from maitred.service.handlers import Function, Handlers
from maitred.wire.codec import decode_body
from maitred.worker.command import run_command
from maitred.worker.context import enter
from maitred.worker.outcome import Outcome, completed, failed, raised
from maitred.worker.threads import Threads
from maitred.worker.undertaker import Undertaker

_log = structlog.get_logger()


class Runner:
    """Runs jobs with a queue's handlers.

    `stuck` is called with 1 when a blocking handler outlives its stop, and with -1 when it returns at last:
    until then its thread takes up a slot.
    """

    def __init__(self, handlers: Handlers, settings: Settings, stuck: Callable[[int], None]) -> None:
        self._functions = {f"handler:{name}": function for name, function in handlers.items()}
        self._is_async = {need: _is_async(function) for need, function in self._functions.items()}
        self._kill_after = settings.kill_after / SECOND
        self._threads = Threads()
        self._undertaker = Undertaker()
        self._stuck = stuck

    @property
    def serves(self) -> list[str]:
        """What this runner can run."""
        return sorted((*self._functions, COMMAND))

    def close(self) -> None:
        """Let go of what is kept beside the runs."""
        self._undertaker.close()

    async def run(self, start: Start) -> Outcome:
        """Run a job to its end. Cancelling this stops it, and nothing but a stuck thread is left of it then.

        It gives what was complete all the same, or what a command has printed; else it raises CancelledError.
        """
        body = decode_body(start.body)
        enter(start.id, start.version, start.attempt, body)
        if start.need == COMMAND:
            return await run_command(body["run"], self._kill_after, self._undertaker)
        function = self._functions.get(start.need)
        if function is None:
            return failed("no-handler", f"this worker has no {start.need!r}")
        args = body["run"].get("args") or {}
        try:
            if self._is_async[start.need]:
                return completed(await function(**args))
            return await self._run_blocking(function, args)
        except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001 - its job's outcome
            _log.info("a handler raised", job=start.id, need=start.need, exc_info=error)
            return raised(error)

    async def _run_blocking(self, function: Function, args: dict[str, Any]) -> Outcome:
        call = self._threads.call(lambda: function(**args))
        stopped: asyncio.CancelledError | None = None
        try:
            await asyncio.wait([call])
        except asyncio.CancelledError as error:
            if not call.done():
                self._abandon(call)
                raise
            stopped = error
        value = call.result()
        if not inspect.isawaitable(value):
            return completed(value)
        if stopped:
            if inspect.iscoroutine(value):
                value.close()
            raise stopped
        return completed(await value)

    def _abandon(self, call: "asyncio.Future[Any]") -> None:
        """Let a thread that cannot be stopped run on, and count it until it returns."""
        self._stuck(1)

        def returned(call: "asyncio.Future[Any]") -> None:
            call.exception()
            self._stuck(-1)

        call.add_done_callback(returned)


def _is_async(function: Function) -> bool:
    """Tell whether calling this gives a coroutine; an object may be called as well as a function."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - its type is asked, not whether it is there
    )
