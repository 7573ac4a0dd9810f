"""Sessions: programs in a terminal that somebody types to. They are opened here, and taken up again.

A session is an interactive job. Whoever opened it is told a secret, and whoever knows that can take it up
again, at any server, for as long as it goes on. Without a client it goes on for half a minute; then the store
ends it as abandoned.
"""

import hmac
import secrets
from collections import Counter
from hashlib import sha256
from typing import TYPE_CHECKING

from maitred.core.ids import job_id
from maitred.core.job import COMMAND, Admission, Job, Order, Phase, Submitter
from maitred.core.reason import paused_by
from maitred.core.settings import SECOND, Settings
from maitred.errors import SessionDenied, StoreUnavailable, TooLarge
from maitred.service.caller import HOUSE, Caller
from maitred.service.ears import Ears
from maitred.service.foresights import DEAF
from maitred.service.session import Session
from maitred.wire import decode_body, encode_json
from maitred.wire.relay import window
from maitred.wire.session import OpenFrame, ResumeFrame

if TYPE_CHECKING:
    from maitred.service.desk import Desk

# How long a client has to come back, in seconds, and how often the store hears at most that one is here.
COMEBACK = 30.0
ATTEND_EVERY = 3.0


class Sessions:
    """The sessions of a desk's queues; `comeback` is how long a client that drops has to come back.

    `clients` counts those that are here by queue, `denials` what was denied so far by queue and reason.
    """

    def __init__(self, desk: "Desk", comeback: float = COMEBACK) -> None:
        self._desk = desk
        self._attend_every = min(ATTEND_EVERY, comeback / 10)
        self._abandon = round((comeback + self._attend_every) * SECOND)
        self._ears: dict[str, Ears] = {}
        self.clients: Counter[str] = Counter()
        self.denials: Counter[tuple[str, str]] = Counter()

    async def open(self, queue: str, frame: OpenFrame, caller: Caller = HOUSE) -> Session:
        """Start a session at once; `SessionDenied` if the Floor has no room, `TooLarge` or `Forbidden`."""
        caller.must_own(Submitter(frame.submitter.type, frame.submitter.id))
        settings = await self._desk.settings(queue)
        self._listen(queue)
        secret = secrets.token_urlsafe(24)
        key = f"session/{secrets.token_hex(12)}"
        submitter = Submitter(frame.submitter.type, frame.submitter.id)
        columns, rows = frame.terminal
        body = encode_json(
            {
                "key": key,
                "run": {
                    "command": frame.run.command,
                    "files": frame.run.files,
                    "terminal": {"cols": columns, "rows": rows},
                },
                "session": _digest(secret),
            }
        )
        if len(body) > settings.max_body:
            raise TooLarge(len(body), settings.max_body)
        order = Order(job_id(key), submitter, COMMAND, body, abandon=self._abandon)
        admission = await self._desk.store(queue).admit(order)
        if admission.denied:
            self.denials[queue, admission.denied] += 1
            raise await self._denied(queue, admission, submitter, settings)
        return self._session(queue, (order.id, admission.record), secret, settings)

    async def resume(self, queue: str, frame: ResumeFrame, caller: Caller = HOUSE) -> Session:
        """Take up a session again; `SessionDenied` if there is none by this name that goes on."""
        settings = await self._desk.settings(queue)
        id, _, secret = frame.session.rpartition(".")
        [view] = await self._desk.store(queue).read([id])
        if view is None or not _knows(view.job, secret) or not caller.owns(view.job.submitter):
            raise SessionDenied("unknown-session", "there is no such session")
        if view.job.phase is not Phase.RUNNING:
            how = view.job.code or "it was left"
            raise SessionDenied("ended", f"the session has ended: {view.job.message or how}")
        return self._session(queue, (id, view.job.record), secret, settings)

    def _session(self, queue: str, job: tuple[str, int], secret: str, settings: Settings) -> Session:
        return Session(
            self._desk.store(queue),
            self._listen(queue),
            job,
            f"{job[0]}.{secret}",
            window=window(settings.output_limit),
            attend_every=self._attend_every,
            clients=self.clients,
        )

    def _listen(self, queue: str) -> Ears:
        """Give what hears of a queue's sessions; `StoreUnavailable` where nobody listens to the store."""
        foresight = None if self._desk.foresights is None else self._desk.foresights.of(queue)
        if foresight is None:
            raise StoreUnavailable(DEAF)
        if queue not in self._ears:
            self._ears[queue] = Ears(foresight)
        return self._ears[queue]

    async def _denied(
        self, queue: str, admission: Admission, submitter: Submitter, settings: Settings
    ) -> SessionDenied:
        texts = {
            "per-submitter": (
                f"{submitter.type}:{submitter.id} has as many sessions as are allowed: "
                f"{settings.interactive_per_submitter} (interactive.per_submitter)"
            ),
            "no-worker": "no worker that runs commands is here at the moment",
            "slots": "all slots are busy, and sessions do not wait",
        }
        text = texts.get(admission.denied, "there is no room for it")
        if admission.denied == "paused":
            paused = (await self._desk.store(queue).status()).paused
            text = f"the queue is {paused_by(paused)}" if paused else "the queue was paused"
        return SessionDenied(admission.denied, text)


def _digest(secret: str) -> str:
    return sha256(secret.encode(errors="surrogatepass")).hexdigest()


def _knows(job: Job, secret: str) -> bool:
    """Tell whether this is the secret of a job that is a session."""
    kept = decode_body(job.body).get("session")
    return isinstance(kept, str) and hmac.compare_digest(kept, _digest(secret))
