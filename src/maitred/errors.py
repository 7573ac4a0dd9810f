"""Every error that Maitred raises, as types with the facts as attributes.

    MaitredError
    ├── InvalidJob            a body with faults, all of them listed
    ├── TooLarge              a body over the queue's `max_body`, or more artifacts than it keeps
    ├── QueueFull             `max_waiting` is reached
    ├── Unauthorized          no key, or one that is not good
    ├── Forbidden             the key is good, and not for this
    ├── TooOften              more calls than a key may make
    ├── NotFound
    │   ├── UnknownQueue
    │   ├── UnknownJob
    │   ├── UnknownBatch
    │   ├── UnknownArtifact   the job keeps no file of that name
    │   ├── UnknownKey        an API key
    │   └── NoReport          the batch has not been reported yet
    ├── Conflict              the job's state forbids it; nothing was changed
    │   ├── OtherSubmitter    the key belongs to somebody else's unended job
    │   ├── NotWaiting        only a waiting job can be moved
    │   ├── NotMovable        front and immediate jobs keep their place
    │   ├── OtherNonce        the place that the caller saw is no longer this job's
    │   ├── AlreadyEnded      there is nothing left to cancel
    │   ├── LongerDuration    a duration can only be lowered
    │   ├── Interactive       what can be done to a job in line cannot be done to this one
    │   ├── SessionDenied     there is no session for this caller now
    │   ├── NotFailed         only a failed job can be retried
    │   ├── NotHeld           there is no hold to take away
    │   ├── IllegalMove       the table of states has no such move
    │   ├── BatchSealed       no job can be added to it any more
    │   ├── OtherBatch        the key belongs to an unended job outside the batch
    │   ├── BatchReporting    its report is being made; wait until that is stored
    │   ├── BatchUnfinished   jobs of the batch have not ended
    │   ├── LeaseLost         the run is no longer the worker's
    │   ├── NotRunning        nobody can type for a job that does not run
    │   ├── LockLost          the lock on a batch or a job is no longer the caller's
    │   ├── Overtaken         somebody else has changed it since the caller read it
    │   └── SettingsForbidden the waiting jobs forbid this change of settings
    ├── Transient             raised by a handler or a stage: it failed for now, and is tried again
    ├── UnverifiedWebhook     a message that is not proved to be Maitred's, for those who receive them
    │   ├── MalformedWebhook  its headers are missing or make no sense
    │   ├── ForgedWebhook     no signature fits
    │   └── StaleWebhook      it was signed too long ago, or from now
    ├── ServerUnreachable     no server answers at the address that the client was given
    ├── JobFailed             the job that was waited for failed; `code` is the job's
    ├── ConfigError           maitred.toml or the environment has mistakes, each named
    └── StoreError
        ├── StoreUnavailable  the store does not answer
        │   └── SessionLost   the session with the ledger ended, and its locks with it
        ├── SchemaMismatch    the store was written by another version
        ├── EvictionForbidden the server may evict keys; it must be set to `noeviction`
        └── EmbeddedError
            └── DataDirectoryInUse

The default message of an error is the first line of its docstring.
"""

from typing import NamedTuple


class Fault(NamedTuple):
    """One thing wrong with a body: where, and what."""

    path: str
    message: str


class MaitredError(Exception):
    """Something went wrong in Maitred."""

    code: str = "error"

    def __init__(self, message: str | None = None) -> None:
        """Use the class's docstring where no message is given."""
        super().__init__(message or (self.__doc__ or "").partition("\n")[0])


class InvalidJob(MaitredError):
    """The job has faults."""

    code = "invalid"

    def __init__(self, faults: list[Fault]) -> None:
        """Keep all faults; the message is a line with each."""
        self.faults = faults
        super().__init__("; ".join(": ".join(filter(None, fault)) for fault in faults))


class TooLarge(MaitredError):
    """The body is larger than the queue allows."""

    code = "too-large"

    def __init__(self, size: int, limit: int, what: str = "the body") -> None:
        """Name both sizes in bytes."""
        self.size, self.limit = size, limit
        super().__init__(f"{what} has {size} bytes; the queue takes at most {limit}")


class QueueFull(MaitredError):
    """The queue takes no more waiting jobs."""

    code = "full"

    def __init__(self, which: str, limit: int) -> None:
        """`which` is `total` or `per_submitter`."""
        self.which, self.limit = which, limit
        whose = "this submitter has" if which == "per_submitter" else "the queue has"
        super().__init__(f"{whose} {limit} waiting jobs, which is the limit (max_waiting.{which})")


class Unauthorized(MaitredError):
    """A key is needed: send it as `Authorization: Bearer KEY`."""

    code = "unauthorized"


class Forbidden(MaitredError):
    """The key is not good for this."""

    code = "forbidden"


class TooOften(MaitredError):
    """More calls than a key may make."""

    code = "too-often"

    def __init__(self, wait: int) -> None:
        """Say in how many seconds to come again."""
        self.wait = wait
        super().__init__(f"this key calls too often; come again in {wait} s")


class NotFound(MaitredError):
    """There is no such thing."""

    code = "not-found"


class UnknownQueue(NotFound):
    """There is no such queue."""

    code = "unknown-queue"

    def __init__(self, queue: str) -> None:
        """Name the queue that is not there."""
        self.queue = queue
        super().__init__(f"there is no queue {queue!r}")


class UnknownJob(NotFound):
    """There is no such job."""

    code = "unknown-job"

    def __init__(self, queue: str, id: str) -> None:
        """Name the job that is not there."""
        self.queue, self.id = queue, id
        super().__init__(f"queue {queue!r} has no job {id!r}")


class UnknownBatch(NotFound):
    """There is no such batch."""

    code = "unknown-batch"

    def __init__(self, queue: str, id: str) -> None:
        """Name the batch that is not there."""
        self.queue, self.id = queue, id
        super().__init__(f"queue {queue!r} has no batch {id!r}")


class UnknownArtifact(NotFound):
    """The job keeps no file of that name."""

    code = "unknown-artifact"


class UnknownKey(NotFound):
    """There is no such key."""

    code = "unknown-key"

    def __init__(self, id: str) -> None:
        """Name the key that is not there."""
        self.id = id
        super().__init__(f"there is no key {id!r}")


class NoReport(NotFound):
    """The batch has no report yet; it gets one when it is sealed and all its jobs have ended."""

    code = "no-report"


class Conflict(MaitredError):
    """The job's state forbids this."""

    code = "conflict"


class OtherSubmitter(Conflict):
    """The key belongs to another submitter's job that has not ended."""

    code = "other-submitter"


class NotWaiting(Conflict):
    """The job does not wait, so it cannot be moved."""

    code = "not-waiting"


class NotMovable(Conflict):
    """A front or immediate job keeps its place."""

    code = "not-movable"


class OtherNonce(Conflict):
    """The place with that nonce is no longer this job's."""

    code = "other-nonce"


class AlreadyEnded(Conflict):
    """The job has already ended."""

    code = "ended"


class LongerDuration(Conflict):
    """A job's duration can only be lowered; for a longer one, submit it afresh."""

    code = "longer-duration"


class Interactive(Conflict):
    """An interactive job cannot be moved or submitted again; it runs or it has ended."""

    code = "interactive"


class SessionDenied(Conflict):
    """There is no session for this caller now."""

    code = "denied"

    def __init__(self, why: str, message: str) -> None:
        """`why` is a stable code, such as `slots`, `paused` or `per-submitter`."""
        self.why = why
        super().__init__(message)


class NotFailed(Conflict):
    """Only a job that failed can be retried."""

    code = "not-failed"


class NotHeld(Conflict):
    """It is not held by itself; what holds it must be resumed."""

    code = "not-held"


class IllegalMove(Conflict):
    """There is no such move."""

    code = "illegal-move"

    def __init__(self, old: str = "", new: str = "") -> None:
        """Name both states."""
        self.old, self.new = str(old), str(new)
        super().__init__(f"from {self.old!r} there is no move to {self.new!r}" if old else None)


class BatchSealed(Conflict):
    """The batch is sealed: no job can be added to it."""

    code = "sealed"


class OtherBatch(Conflict):
    """The key belongs to a job outside this batch that has not ended."""

    code = "other-batch"


class BatchReporting(Conflict):
    """The report of its batch is being made; try again when that is stored."""

    code = "reporting"


class BatchUnfinished(Conflict):
    """The batch has jobs that have not ended."""

    code = "unfinished"


class LeaseLost(Conflict):
    """The lease of this run is lost: the job is no longer this worker's."""

    code = "lease-lost"


class NotRunning(Conflict):
    """The job does not run."""

    code = "not-running"


class LockLost(Conflict):
    """The lock is no longer this caller's."""

    code = "lock-lost"


class Overtaken(Conflict):
    """Somebody else has changed it since it was read; read it again."""

    code = "overtaken"


class SettingsForbidden(Conflict):
    """The order and the classes of a queue cannot change while jobs wait or run in it."""

    code = "settings"


class Transient(MaitredError):
    """It failed for now, and may go well a little later.

    A handler or a stage raises this, or an error derived from it, and its job is tried again after a while,
    up to the queue's `attempts`.
    """

    code = "transient"


class UnverifiedWebhook(MaitredError):
    """The message is not proved to be Maitred's."""

    code = "unverified"


class MalformedWebhook(UnverifiedWebhook):
    """The headers of the message are missing, or make no sense."""

    code = "malformed-webhook"


class ForgedWebhook(UnverifiedWebhook):
    """No signature of the message fits the secret."""

    code = "forged-webhook"


class StaleWebhook(UnverifiedWebhook):
    """The message was signed too long ago, or by a clock that goes wrong."""

    code = "stale-webhook"


class ServerUnreachable(MaitredError):
    """No server answers."""

    code = "no-server"


class JobFailed(MaitredError):
    """The job failed."""

    code = "failed"

    def __init__(self, queue: str, id: str, code: str, message: str) -> None:
        """Say which job, and why, in its own code and words."""
        self.queue, self.id, self.code, self.message = queue, id, code, message
        super().__init__(f"the job {id} failed ({code}){f': {message}' if message else ''}")


class ConfigError(MaitredError):
    """The settings have mistakes."""

    code = "config"


class StoreError(MaitredError):
    """The store could not do it."""

    code = "store"


class StoreUnavailable(StoreError):
    """The store does not answer."""

    code = "unavailable"


class SessionLost(StoreUnavailable):
    """The session with the ledger ended, and its locks with it."""

    code = "session-lost"


class SchemaMismatch(StoreError):
    """The store was written by another version of Maitred."""

    code = "schema"


class EvictionForbidden(StoreError):
    """The server may evict keys under memory pressure; set its maxmemory-policy to noeviction."""

    code = "eviction"


class EmbeddedError(StoreError):
    """The embedded store could not start."""

    code = "embedded"


class DataDirectoryInUse(EmbeddedError):
    """Another process runs a store in this data directory."""

    code = "data-in-use"

    def __init__(self, message: str | None = None, *, pid: int | None = None) -> None:
        """Name the process that has it, where that is known."""
        self.pid = pid
        super().__init__(message)
