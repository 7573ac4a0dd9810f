"""How jobs are run: the handler, stage or command is called, and its end made into an outcome."""

import asyncio
import inspect
import traceback
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any

import structlog

from maitred.core.job import COMMAND, Start
from maitred.core.settings import SECOND, Settings
from maitred.core.stages import STAGE
from maitred.errors import ConfigError
from maitred.service import tracing
from maitred.service.handlers import Function, Handlers
from maitred.service.host import Host, this_host
from maitred.service.order import HANDLER
from maitred.wire.codec import decode_body
from maitred.worker.command import run_command
from maitred.worker.context import enter, tell_to_stop
from maitred.worker.outcome import Outcome, completed, failed, raised
from maitred.worker.run import Run
from maitred.worker.sandbox import Sandbox
from maitred.worker.session import run_session
from maitred.worker.stage_job import StageJob, with_words_of
from maitred.worker.threads import Threads
from maitred.worker.undertaker import Undertaker

TRACE_LIMIT = 100_000

_log = structlog.get_logger()


class Runner:
    """Runs jobs with a queue's handlers; in a queue with stages, with the functions of its stages only.

    `stuck` is called with 1 when a blocking handler outlives its stop, and with -1 when it returns at last:
    until then its thread takes up a slot. `stopping` is set when the worker is to end. What is logged while a
    job runs carries its queue, its id, and a name of its lease that is no secret.
    """

    def __init__(
        self,
        handlers: Handlers,
        settings: Settings,
        stuck: Callable[[int], None],
        host: Host | None = None,
        visible: Sequence[str] = (),
        *,
        stopping: asyncio.Event | None = None,
        queue: str = "",
    ) -> None:
        self._handlers, self._stopping, self._queue = handlers, stopping or asyncio.Event(), queue
        self._threads = Threads()
        self._undertaker = Undertaker()
        self.sandbox = Sandbox(settings, host or this_host(), self._undertaker, visible)
        self._stuck = stuck
        self.heed(settings)

    def heed(self, settings: Settings) -> None:
        """Take in settings, for what starts from now on."""
        self._settings = settings
        self._staged = settings.staged
        self._functions: dict[str, Function] = (
            {STAGE + name: function for name, function in self._handlers.stages.items()}
            if settings.staged
            else {HANDLER + name: function for name, function in self._handlers.items()}
        )
        self._is_async = {need: _is_async(function) for need, function in self._functions.items()}
        self.sandbox.heed(settings)

    @property
    def serves(self) -> list[str]:
        """What this runner can run."""
        return sorted(self._functions if self._staged else (*self._functions, COMMAND))

    def close(self) -> None:
        """Let go of what is kept beside the runs."""
        self._undertaker.close()

    def run(self, run: Run) -> Coroutine[Any, Any, Outcome]:
        """Give what runs a job to its end; to be awaited at once, by the task that it is for.

        Cancelling it stops the job, and nothing but a stuck thread is left of that then. It gives what was
        complete all the same, or what a command has printed; else it raises CancelledError.
        """
        # No coroutine itself, and neither is `_run`, since each one more costs every job.
        body = decode_body(run.start.body)
        return self._traced(run, body) if tracing.on() else self._run(run, body)

    async def _traced(self, run: Run, body: dict[str, Any]) -> Outcome:
        start = run.start
        about: dict[str, str | int] = {"queue": self._queue, "job": start.id, "lease": run.name}
        with tracing.span(f"run {start.need}", "consumer", body.get("trace") or {}, **about) as span:
            outcome = await self._run(run, body)
            if outcome.code:
                span.fail(outcome.code)
            return outcome

    def _run(self, run: Run, body: dict[str, Any]) -> Coroutine[Any, Any, Outcome]:
        start = run.start
        job = enter(self._queue, run, body)
        if start.need == COMMAND:
            if "session" in body:
                return run_session(run, body["run"], self.sandbox, self._settings, self._stopping)
            return run_command(body["run"], self.sandbox, say=run.say, keep=run.keep, progress=job.progress)
        function = self._functions.get(start.need)
        if function is None:
            return self._unserved(start)
        args = body["run"].get("args") or {}
        if self._staged:
            return self._call_stage(start, function, StageJob(start, job, args))
        return self._call(start, partial(function, **args))

    async def _unserved(self, start: Start) -> Outcome:
        return failed("no-handler", f"this worker has no {start.need!r}")

    async def _call_stage(self, start: Start, function: Function, stage: StageJob) -> Outcome:
        return with_words_of(stage, start, await self._call(start, partial(function, stage)))

    async def _call(self, start: Start, call: Callable[[], Any]) -> Outcome:
        try:
            if self._is_async[start.need]:
                return completed(await call())
            return await self._run_blocking(call)
        except asyncio.CancelledError:
            tell_to_stop()
            raise
        except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001 - its job's outcome
            outcome = raised(error)
            _log.info("a handler raised", need=start.need, **_shown(error, outcome))
            return outcome

    async def _run_blocking(self, function: Callable[[], Any]) -> Outcome:
        call = self._threads.call(function)
        stopped: asyncio.CancelledError | None = None
        try:
            await asyncio.wait([call])
        except asyncio.CancelledError as error:
            if not call.done():
                await self._stop(call)
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

    async def _stop(self, call: "asyncio.Future[Any]") -> None:
        """Let a thread know that it is to stop; after as long as a program would have, it counts as stuck."""
        tell_to_stop()
        try:
            await asyncio.wait([call], timeout=self._settings.kill_after / SECOND)
        finally:
            if call.done():
                call.exception()
            else:
                self._abandon(call)

    def _abandon(self, call: "asyncio.Future[Any]") -> None:
        """Let a thread that cannot be stopped run on, and count it until it returns."""
        self._stuck(1)

        def returned(call: "asyncio.Future[Any]") -> None:
            call.exception()
            self._stuck(-1)

        call.add_done_callback(returned)


def _shown(error: BaseException, outcome: Outcome) -> dict[str, Any]:
    """Give what the log shows of an error: all of it, or its message only if it has megabytes to say."""
    if sum(map(len, traceback.format_exception(error))) <= TRACE_LIMIT:
        return {"exc_info": error}
    return {"error": outcome.message}


def check_stages(handlers: Handlers, settings: Settings, queue: str) -> None:
    """Refuse functions for stages that the queue does not have: nobody would ever call them."""
    known = settings.stages if settings.staged else ()
    unknown = [repr(name) for name in handlers.stages if name not in known]
    if unknown and known:
        raise ConfigError(
            f"Queue {queue!r} has no stage {', '.join(unknown)}; its stages are {', '.join(known)}."
        )
    if unknown:
        raise ConfigError(
            f"Queue {queue!r} has no stages of its own, so nothing would run {', '.join(unknown)}; "
            f"name them in queues.{queue}.stages, or register a handler."
        )
    if known and handlers:
        unused = sorted(handlers)
        _log.warning("a queue with stages calls no handlers by name", queue=queue, handlers=unused)


def _is_async(function: Function) -> bool:
    """Tell whether calling this gives a coroutine; an object may be called as well as a function."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - its type is asked, not whether it is there
    )
