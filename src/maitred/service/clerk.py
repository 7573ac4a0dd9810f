"""The clerk: it expands, reports and sends the batches of one queue. Any number of them may run at once.

Each batch is worked on under its lock, and every write carries the lock's token. A clerk may die at any time:
when its lock is over another one begins the same work again, and comes to the same end. Jobs that are in are
passed over; a report is stored in the same step that ends the batch; a report may be sent twice if a clerk
dies between sending it and noting that, with the same `webhook-id`.
"""

import asyncio
import contextlib
import secrets
from collections.abc import Callable, Coroutine
from typing import Any
from urllib.parse import urlsplit

import structlog

from maitred.core.batch import Batch, Errand
from maitred.core.settings import SECOND, Settings
from maitred.errors import (
    Conflict,
    InvalidJob,
    LockLost,
    MaitredError,
    NotFound,
    StoreError,
)
from maitred.service.batch_desk import sender
from maitred.service.delivery import MOST_TRIES, Postman, back_off
from maitred.service.expanding import Expanding
from maitred.service.messages import report_message
from maitred.service.report import Report
from maitred.service.rounds import SAFETY_NET, Rounds
from maitred.store.port import Store
from maitred.wire import decode_json, encode_json, read_batch
from maitred.wire.batch import ResponseType

ERRANDS_AT_ONCE = 4
# A send is a wait for somebody else's server, and must not keep others from being expanded and reported.
SENDS_AT_ONCE = 64
ROWS_PER_CALL = 500
LONGEST_FAULT = 10_000
_FOR_RESPONSE = ("submitter", "response_url", "response_type")

_log = structlog.get_logger()


class Clerk(Rounds):
    """One clerk of one queue."""

    def __init__(
        self,
        store: Store,
        owner: str,
        postman: Postman,
        *,
        safety_net: float = SAFETY_NET,
    ) -> None:
        super().__init__(store.queue, safety_net)
        self._store = store
        self._owner = owner
        self._postman = postman
        self._sending: set[asyncio.Task[None]] = set()

    async def work_off(self) -> int:
        """Do all that can be done now, one errand after the other; give how many there were."""
        done = 0
        while (errand := await self._lock()) is not None:
            await self._do(*errand)
            done += 1
        return done

    async def _begin(self) -> bool:
        """Begin an errand, if there is one and a hand is free."""
        at_work = len(self._tasks) - len(self._sending)
        if at_work >= ERRANDS_AT_ONCE or len(self._sending) >= SENDS_AT_ONCE:
            return False
        try:
            errand = await self._lock()
        except MaitredError as error:
            self._tell("a queue's batches cannot be looked at", error)
            return False
        self._trouble = ""
        if errand is None:
            return False
        task = self._take_on(self._do(*errand))
        if errand[0].work == "send":
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)
        return True

    async def _lock(self) -> tuple[Errand, bytes] | None:
        token = secrets.token_bytes(16)
        errand = await self._store.lock_batch(self._owner, token)
        return (errand, token) if errand else None

    async def _do(self, errand: Errand, token: bytes) -> None:
        """Do one errand under its lock, and give that up in the end.

        After a failure the lock is left to run out: the same is not tried again at once.
        """
        batch = errand.batch
        verbs: dict[str, Callable[[Batch, bytes, Settings], Coroutine[Any, Any, None]]] = {
            "expand": self._expand,
            "report": self._report,
            "send": self._send,
        }
        try:
            settings = (await self._store.status()).settings
            work = verbs[errand.work](batch, token, settings)
            await self._kept(batch.id, token, settings.lease / SECOND / 3, work)
            await self._store.unlock_batch(batch.id, token)
        except (LockLost, NotFound):
            _log.info("a batch was left to others", queue=self._store.queue, batch=batch.id, work=errand.work)
        except (StoreError, Conflict) as error:
            self._tell("a batch could not be worked on", error)
        except asyncio.CancelledError:
            with contextlib.suppress(MaitredError):
                await self._store.unlock_batch(batch.id, token)
            raise

    async def _kept(self, id: str, token: bytes, every: float, work: Coroutine[Any, Any, None]) -> None:
        """Do the work while the lock is kept; LockLost ends it in the middle."""
        tasks = [asyncio.create_task(part) for part in (work, self._keep(id, token, every))]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _keep(self, id: str, token: bytes, every: float) -> None:
        while True:
            await asyncio.sleep(every)
            # While the store is away nobody else gets the lock either; if it was lost, the next call tells.
            with contextlib.suppress(StoreError):
                await self._store.keep_batch(id, token)

    # ---------------------------------------------------------------- the work

    async def _expand(self, batch: Batch, token: bytes, settings: Settings) -> None:
        sent = decode_json(batch.submission)
        try:
            body = read_batch(sent)
            caller = sender(sent, body)
            expanding = Expanding(
                self._store, batch.id, token, settings, caller=caller, pause=self._safety_net
            )
            fault = await expanding.fill(body)
        except InvalidJob as error:
            fault = f"the submission cannot be read: {error}"
        await self._store.seal_batch(batch.id, token=token, fault=fault[:LONGEST_FAULT])

    async def _report(self, batch: Batch, token: bytes, _settings: Settings) -> None:
        report = Report(batch)
        after: int | None = 0
        while after is not None:
            page = await self._store.batch_rows(batch.id, after, ROWS_PER_CALL)
            if told := report.add(page.rows):
                await self._store.mark_rows(batch.id, token, told)
            after = page.next
        send = report.changed and _response(batch)[0] is not None
        await self._store.report_batch(batch.id, token, encode_json(report.document()), send=send)

    async def _send(self, batch: Batch, token: bytes, settings: Settings) -> None:
        url, form = _response(batch)
        if url is None:
            await self._store.sent_batch(batch.id, token, None)
            return
        message = report_message(self._store.queue, batch, form)
        tried = await self._postman.post(url, message, tries=batch.tries, private=settings.private_addresses)
        again = tried.answer == "again" and batch.tries + 1 < MOST_TRIES
        wait = back_off(settings, batch.tries, tried.wait) if again else None
        await self._store.sent_batch(batch.id, token, wait)
        if tried.answer != "sent":
            what = "a report will be sent again" if again else "a report was given up"
            to = urlsplit(url).hostname
            _log.warning(what, queue=self._store.queue, batch=batch.id, to=to, answer=tried.said)


def _response(batch: Batch) -> tuple[str | None, ResponseType]:
    """Give where and in which form a report is to be sent; nowhere, if the submission cannot be read."""
    sent = decode_json(batch.submission)
    try:
        body = read_batch({name: sent[name] for name in _FOR_RESPONSE if name in sent})
    except InvalidJob:
        return None, "json"
    return body.response_url, body.response_type
