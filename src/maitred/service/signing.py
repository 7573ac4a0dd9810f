"""Signing what is sent: the headers of Standard Webhooks, with a signature for each secret that is good."""

import time
from collections.abc import Callable

from maitred.service.keyring import Keys
from maitred.webhooks import signature


class Signer:
    """Signs messages with the secrets of the key that asked for them; the secrets go nowhere else."""

    def __init__(self, keys: Keys, clock: Callable[[], float] = time.time) -> None:
        self._keys = keys
        self._clock = clock

    async def headers(self, by: str, id: str, body: bytes) -> dict[str, str]:
        """Give the headers of a message that the key `by` asked for; `UnknownKey` if it is gone."""
        secrets, timestamp = await self._keys.signing(by), int(self._clock())
        return {
            "webhook-id": id,
            "webhook-timestamp": str(timestamp),
            "webhook-signature": " ".join(signature(secret, id, timestamp, body) for secret in secrets),
        }
