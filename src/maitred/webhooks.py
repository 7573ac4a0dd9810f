"""Webhooks, for those who receive them: tell a message of Maitred from one that anybody could have sent.

    secret = "whsec_…"                      # what `maitred keys secret` shows

    id = maitred.webhooks.verify(secret, request.headers, await request.body())

The headers are those of Standard Webhooks: `webhook-id`, `webhook-timestamp` and `webhook-signature`. The id
is the same each time that a message is sent, so a receiver that keeps the ids it has seen knows a repeat.
"""

import binascii
import hmac
import time
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from hashlib import sha256

from maitred.errors import ConfigError, ForgedWebhook, MalformedWebhook, StaleWebhook

TOLERANCE = 300
PREFIX = "whsec_"
SHORTEST, LONGEST = 24, 64
_SCHEME = "v1"


def verify(
    secret: str | Iterable[str],
    headers: Mapping[str, str],
    body: bytes,
    tolerance: float = TOLERANCE,
    *,
    now: float | None = None,
) -> str:
    """Check that a message was signed with the secret, or one of them, lately; give its id.

    `body` is what came in, byte for byte. Names of headers may be written in any case. Raises
    `MalformedWebhook` if a header is missing or makes no sense, `ForgedWebhook` if no signature fits, and
    `StaleWebhook` if it was sent more than `tolerance` seconds ago, or from now; `ConfigError` if a secret is
    none. All three are an `UnverifiedWebhook`.
    """
    keys = [key_of(each) for each in ([secret] if isinstance(secret, str) else secret)]
    given = {name.lower(): value for name, value in headers.items()}
    id, timestamp, signed = (_header(given, name) for name in ("id", "timestamp", "signature"))
    if not (timestamp.isascii() and timestamp.isdecimal() and len(timestamp) < 16):
        raise MalformedWebhook("webhook-timestamp is not a whole number of seconds")
    expected = [_digest(key, id, timestamp, body) for key in keys]
    # All are compared, so that the time it takes tells nothing of which one fits.
    fits = [hmac.compare_digest(one, other) for one in _signatures(signed) for other in expected]
    if not any(fits):
        raise ForgedWebhook
    if abs((time.time() if now is None else now) - int(timestamp)) > tolerance:
        raise StaleWebhook
    return id


def signature(secret: str, id: str, timestamp: int, body: bytes) -> str:
    """Give the signature of a message, as it stands in the header."""
    return f"{_SCHEME},{b64encode(_digest(key_of(secret), id, str(timestamp), body)).decode()}"


def key_of(secret: str) -> bytes:
    """Give the bytes that a secret stands for; `ConfigError` if it is none. It does not repeat the secret."""
    says = f"a webhook's secret is {PREFIX} and {SHORTEST} to {LONGEST} bytes in base64"
    if not secret.startswith(PREFIX):
        raise ConfigError(says)
    try:
        key = b64decode(secret.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        raise ConfigError(says) from None
    if not SHORTEST <= len(key) <= LONGEST:
        raise ConfigError(says)
    return key


def _header(given: Mapping[str, str], name: str) -> str:
    value = given.get(f"webhook-{name}", "")
    if not value:
        raise MalformedWebhook(f"the header webhook-{name} is missing")
    return value


def _signatures(header: str) -> list[bytes]:
    """Give the signatures of the scheme that is known here; there may be one for each of several secrets."""
    found = []
    for each in header.split(" "):
        scheme, _, text = each.partition(",")
        if scheme == _SCHEME:
            try:
                found.append(b64decode(text, validate=True))
            except (binascii.Error, ValueError):
                raise MalformedWebhook("webhook-signature has one that is not base64") from None
    return found


def _digest(key: bytes, id: str, timestamp: str, body: bytes) -> bytes:
    return hmac.digest(key, f"{id}.{timestamp}.".encode() + body, sha256().name)
