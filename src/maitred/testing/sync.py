"""The sync face of a rehearsal: the same coroutines, on the loop that `queue.sync` uses."""

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from maitred.service.sync import wait_for
from maitred.testing.rehearsal import Rehearsal

P = ParamSpec("P")
T = TypeVar("T")


def _blocking(
    method: Callable[Concatenate[Rehearsal, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate["SyncRehearsal", P], T]:
    @wraps(method)
    def call(self: "SyncRehearsal", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return wait_for(method(self.of, *args, **kwargs))

    return call


class SyncRehearsal:
    """A rehearsal whose methods block; get one as `rehearsal.sync`."""

    def __init__(self, of: Rehearsal) -> None:
        self.of = of

    submit = _blocking(Rehearsal.submit)
    submit_many = _blocking(Rehearsal.submit_many)
    job = _blocking(Rehearsal.job)
    completed = _blocking(Rehearsal.completed)
    failed = _blocking(Rehearsal.failed)
    waiting = _blocking(Rehearsal.waiting)
    secret = _blocking(Rehearsal.secret)
    run_due = _blocking(Rehearsal.run_due)
    run_until_idle = _blocking(Rehearsal.run_until_idle)
