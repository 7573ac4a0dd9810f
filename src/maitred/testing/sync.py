"""The sync face of a rehearsal: the same coroutines, on the loop that `queue.sync` uses."""

from maitred.background import Blocking, blocking
from maitred.testing.rehearsal import Rehearsal


class SyncRehearsal(Blocking[Rehearsal]):
    """A rehearsal whose methods block; get one as `rehearsal.sync`."""

    submit = blocking(Rehearsal.submit)
    submit_many = blocking(Rehearsal.submit_many)
    job = blocking(Rehearsal.job)
    completed = blocking(Rehearsal.completed)
    failed = blocking(Rehearsal.failed)
    waiting = blocking(Rehearsal.waiting)
    secret = blocking(Rehearsal.secret)
    run_due = blocking(Rehearsal.run_due)
    run_until_idle = blocking(Rehearsal.run_until_idle)
