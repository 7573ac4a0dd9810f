"""Sending a report to its response address: one try, and what follows from the answer.

A try takes so long and no longer, whatever the address does, and nothing is read of what it says but its
status: one that never ends its answer costs no more than one that does not answer.
"""

import asyncio
import random
import time
from typing import Literal

import httpx

from maitred.core.settings import Settings

PATIENCE = 15.0
# With the longest back-off of five minutes, this is about a day.
MOST_TRIES = 300

Answer = Literal["sent", "again", "refused"]


async def post(
    url: str,
    content: bytes,
    *,
    media_type: str,
    id: str,
    patience: float = PATIENCE,
) -> tuple[Answer, str]:
    """Send it once. Give whether it arrived, may arrive later, or never will, and what was answered."""
    headers = {
        "content-type": media_type,
        "webhook-id": id,
        "webhook-timestamp": str(int(time.time())),
    }
    try:
        async with (
            asyncio.timeout(patience),
            httpx.AsyncClient(timeout=patience, trust_env=False) as client,
            client.stream("POST", url, content=content, headers=headers) as answer,
        ):
            return _understood(answer)
    except TimeoutError:
        return "again", f"did not answer within {patience:g} seconds"
    except httpx.InvalidURL as error:
        return "refused", str(error)
    except httpx.HTTPError as error:
        return "again", str(error) or type(error).__name__


def _understood(answer: httpx.Response) -> tuple[Answer, str]:
    said = f"{answer.status_code} {answer.reason_phrase}".rstrip()
    if answer.is_success:
        return "sent", said
    later = answer.is_server_error or answer.status_code == httpx.codes.TOO_MANY_REQUESTS
    return ("again" if later else "refused"), said


def back_off(settings: Settings, tries: int) -> int:
    """Give the microseconds until the next try: twice as long each time, up to a bound, and never in step."""
    longest = min(settings.most_backoff, settings.backoff << min(tries, 40))
    return max(1, round(longest * random.uniform(0.5, 1)))  # noqa: S311 - nobody gains by guessing it
