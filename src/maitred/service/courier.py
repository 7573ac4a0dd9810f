"""The courier: it tells submitters what has become of their jobs. Any number of them may run at once.

The store keeps what is to be told, in order for each job. A courier locks what is due, sends it, and notes
how that went: it arrived, it is tried again later, or it is given up. It may die at any time: when its lock
is over another one sends the same again, with the same `webhook-id`. So everything arrives at least once.
"""

import secrets
import time
from urllib.parse import urlsplit

import structlog

from maitred.core.notices import Delivery, NoticeErrand
from maitred.core.settings import SECOND, Settings
from maitred.errors import Conflict, MaitredError, NotFound, StoreError
from maitred.service.delivery import MOST_TRIES, Postman, Tried, back_off
from maitred.service.messages import address_of, notice_message
from maitred.service.receivers import Receivers
from maitred.service.rounds import SAFETY_NET, Rounds
from maitred.store.port import Store

SENDS_AT_ONCE = 64

_log = structlog.get_logger()


class Courier(Rounds):
    """One courier of one queue."""

    def __init__(
        self,
        store: Store,
        owner: str,
        postman: Postman,
        receivers: Receivers,
        *,
        safety_net: float = SAFETY_NET,
    ) -> None:
        super().__init__(store.queue, safety_net)
        self._store = store
        self._owner = owner
        self._postman = postman
        self._receivers = receivers

    async def work_off(self) -> int:
        """Tell all that can be told now, one after the other; give how much there was."""
        done = 0
        while errands := await self._store.lock_notices(self._owner, token := _new_token(), 1):
            settings = (await self._store.status()).settings
            await self._do(errands[0], token, settings)
            done += 1
        return done

    async def _begin(self) -> bool:
        room = SENDS_AT_ONCE - len(self._tasks)
        if room < 1:
            return False
        token = _new_token()
        try:
            errands = await self._store.lock_notices(self._owner, token, room)
            settings = (await self._store.status()).settings if errands else Settings()
        except MaitredError as error:
            self._tell("a queue's callbacks cannot be looked at", error)
            return False
        self._trouble = ""
        for errand in errands:
            self._take_on(self._do(errand, token, settings))
        return len(errands) == room

    async def _do(self, errand: NoticeErrand, token: bytes, settings: Settings) -> None:
        """Try once to tell something, and note how it went; without a turn, leave it till its lock ends."""
        url = address_of(errand.view.job)
        async with self._receivers.turn(url) as comes:
            if comes:
                began = time.monotonic()
                message = notice_message(self._queue, errand, settings)
                tries, private = errand.notice.tries, settings.private_addresses
                try:
                    tried = await self._postman.post(url, message, tries=tries, private=private)
                except StoreError as error:
                    # The secrets are in the store as well. The lock ends, and somebody tries again.
                    self._tell("a callback could not be signed", error)
                    return
                took = round((time.monotonic() - began) * SECOND)
                await self._note(errand, token, _delivery(errand, tried, took, settings), url)

    async def _note(self, errand: NoticeErrand, token: bytes, delivery: Delivery, url: str) -> None:
        job, notice = errand.view.job, errand.notice
        try:
            await self._store.told_notice(job.record, notice.number, token, delivery)
        except (Conflict, NotFound):
            _log.info("a callback was left to others", queue=self._queue, job=job.id)
        except StoreError as error:
            self._tell("how a callback went could not be noted", error)
        if delivery.answer == "refused":
            to = urlsplit(url).hostname
            _log.warning(
                "a callback was given up", queue=self._queue, job=job.id, to=to, answer=delivery.said
            )


def _delivery(errand: NoticeErrand, tried: Tried, took: int, settings: Settings) -> Delivery:
    """Give what is noted of a try, by the store's clock; too many tries are the end of it."""
    notice, at = errand.notice, errand.view.now
    answer, said, again_at = tried.answer, tried.said, 0
    if answer == "again":
        if notice.tries + 1 < MOST_TRIES:
            again_at = at + took + back_off(settings, notice.tries, tried.wait)
        else:
            answer, said = "refused", f"given up after {notice.tries + 1} tries: {said}"
    return Delivery(notice.number, notice.kind, at, notice.tries + 1, answer, said, took, again_at)


def _new_token() -> bytes:
    return secrets.token_bytes(16)
