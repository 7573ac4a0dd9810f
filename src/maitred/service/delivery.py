"""Sending a message to its response address: one try, and what follows from the answer.

A try takes so long and no longer, whatever the address does, and its answer counts by its status: one that
never ends what it says costs no more than one that does not answer. Redirects are not followed, since what is
signed for one receiver is not another's.
"""

import asyncio
import random
import ssl
import time
from collections.abc import Callable
from datetime import UTC
from email.utils import parsedate_to_datetime
from functools import cached_property
from typing import Literal, NamedTuple

import httpx

from maitred.core.settings import MINUTE, SECOND, Settings
from maitred.errors import UnknownKey
from maitred.service import tracing
from maitred.service.addresses import CheckedTransport, PrivateAddress
from maitred.service.signing import Signer

PATIENCE = 15.0
# With the longest back-off of five minutes, this is about a day.
MOST_TRIES = 300
LONGEST_WAIT = 60 * MINUTE
LONGEST_SAYING = 200
_LATER = (httpx.codes.REQUEST_TIMEOUT, httpx.codes.TOO_MANY_REQUESTS)

Answer = Literal["sent", "again", "refused"]
# Hears of each try: the queue, the kind of message, the answer, and how many seconds it took.
OnTry = Callable[[str, str, str, float], None]


class Message(NamedTuple):
    """What is sent: its id, which stays the same in all tries, and the key that asked for it.

    `kind` is as `job.ended`, of something in this `queue`; `trace` is that of whoever submitted it.
    """

    id: str
    by: str
    content: bytes
    media_type: str = "application/json"
    queue: str = ""
    kind: str = ""
    trace: tracing.Trace = tracing.NO_TRACE


class Tried(NamedTuple):
    """Whether a message arrived, may arrive later, or never will, and what was answered.

    `wait` is how long the receiver wants to be left alone, in microseconds.
    """

    answer: Answer
    said: str
    wait: int = 0


class Postman:
    """Sends messages, each on a connection of its own.

    None is kept for the next message, which may be for another receiver at the same address. `tried` hears
    of each try. With a `transport` they go there, and nowhere else.
    """

    def __init__(
        self,
        signer: Signer,
        *,
        patience: float = PATIENCE,
        tried: OnTry | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._signer = signer
        self._patience = patience
        self._tried = tried
        self._transport = transport

    async def post(self, url: str, message: Message, *, private: bool, tries: int = 0) -> Tried:
        """Sign a message and send it once, after so many tries before; to a `private` address if allowed."""
        begun = time.monotonic()
        about: dict[str, str | int] = {"queue": message.queue, "message": message.id, "attempt": tries + 1}
        with tracing.span(f"callback {message.kind}", "client", message.trace, **about) as span:
            tried = await self._post(url, message, private=private, tries=tries)
            if tried.answer != "sent":
                span.fail(tried.answer)
        if self._tried:
            self._tried(message.queue, message.kind, tried.answer, time.monotonic() - begun)
        return tried

    async def _post(self, url: str, message: Message, *, private: bool, tries: int) -> Tried:
        try:
            headers = await self._signer.headers(message.by, message.id, message.content)
        except UnknownKey as error:
            return Tried("refused", f"it cannot be signed: {error}")
        headers |= {
            "content-type": message.media_type,
            "maitred-attempt": str(tries + 1),
            "user-agent": "maitred",
        }
        headers |= tracing.outgoing()
        try:
            async with (
                asyncio.timeout(self._patience),
                self._client(url, private=private) as client,
                client.stream("POST", url, content=message.content, headers=headers) as answer,
            ):
                return _understood(answer)
        except TimeoutError:
            return Tried("again", f"did not answer within {self._patience:g} seconds")
        except PrivateAddress as error:
            return Tried("refused", _short(f"private address: {error}"))
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            return Tried("refused", _short(str(error)))
        except httpx.HTTPError as error:
            return Tried("again", _short(str(error) or type(error).__name__))

    def _client(self, url: str, *, private: bool) -> httpx.AsyncClient:
        # Over plain http nothing is verified, and reading all the world's certificates takes long.
        verify = self._certificates if url.lower().startswith("https:") else False
        transport = self._transport or CheckedTransport(private=private, verify=verify)
        return httpx.AsyncClient(transport=transport, timeout=self._patience, trust_env=False)

    @cached_property
    def _certificates(self) -> ssl.SSLContext:
        return httpx.create_ssl_context(trust_env=False)


def _understood(answer: httpx.Response) -> Tried:
    said = _short(f"{answer.status_code} {answer.reason_phrase}".rstrip())
    if answer.is_success:
        return Tried("sent", said)
    if answer.is_redirect:
        return Tried("refused", f"{said}: redirects are not followed")
    if answer.is_server_error or answer.status_code in _LATER:
        return Tried("again", said, _asked_for(answer.headers.get("retry-after", "")))
    return Tried("refused", said)


def _asked_for(text: str) -> int:
    """Read how long a receiver wants to be left alone, as a number of seconds or a time."""
    if text.isascii() and text.isdecimal():
        return min(int(text[:12]) * SECOND, LONGEST_WAIT)
    try:
        moment = parsedate_to_datetime(text)
        wait = moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() - time.time()
    except (ValueError, OverflowError):
        return 0
    return max(0, min(round(wait * SECOND), LONGEST_WAIT))


def _short(text: str) -> str:
    """Give what a stranger said on one line, and not all of it if that is long."""
    return text.encode("ascii", "backslashreplace").decode()[:LONGEST_SAYING].translate(_ONE_LINE)


_ONE_LINE = dict.fromkeys(range(32), " ")


def back_off(settings: Settings, tries: int, wait: int = 0) -> int:
    """Give the microseconds until the next try: twice as long each time, up to a bound, and never in step.

    A receiver that wants to be left alone for longer is.
    """
    longest = min(settings.most_backoff, settings.backoff << min(tries, 40))
    return max(1, wait, round(longest * random.uniform(0.5, 1)))  # noqa: S311 - nobody gains by guessing it
