"""The API keys: who may call, and with which secret what they asked for is signed when it is told to them.

There is always the key `local`: whoever calls on loopback without a key. Its secret is made when it is first
needed. A secret that was replaced goes on to sign beside the new one for a time, so that receivers can change
over without missing a message.
"""

import secrets
import time
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import msgspec

from maitred.core.settings import DAY
from maitred.errors import UnknownKey
from maitred.service.document import Document
from maitred.service.moment import iso, iso_or_none
from maitred.store.port import Keyring
from maitred.webhooks import PREFIX
from maitred.wire import encode_json

LOCAL = "local"
KEPT = DAY
SECRET_BYTES = 32
# Each of them is one more signature in the headers of every message.
MOST_SECRETS = 4

Role = Literal["viewer", "submitter", "operator", "admin"]


class Secret(NamedTuple):
    """A callback secret, and until when it signs; 0 is for ever."""

    secret: str
    until: int = 0


@dataclass(frozen=True, slots=True)
class Key:
    """The record of a key. `sha256` is of the key itself, which is not kept; `local` has none.

    With no `queues` or `submitters` it is good for all.
    """

    id: str
    name: str
    role: Role
    created_at: int
    queues: tuple[str, ...] = ()
    submitters: tuple[str, ...] = ()
    sha256: str = field(default="", repr=False)
    expires_at: int = 0
    revoked: bool = False
    secrets: tuple[Secret, ...] = field(default=(), repr=False)


_read = msgspec.json.Decoder(Key).decode


class Keys:
    """What can be done with the keys of one place."""

    def __init__(self, keyring: Keyring, clock: Callable[[], float] = time.time) -> None:
        self._keyring = keyring
        self._clock = clock

    async def all(self) -> list[Key]:
        """Give all keys in the order in which they were made, each with the secrets that sign now."""
        found = [key for _, key in (await self._found()).values()]
        return sorted(found, key=lambda key: (key.created_at, key.id))

    async def any_made(self) -> bool:
        """Tell whether a key was made, be it revoked by now: then strangers may be among the callers."""
        return bool((await self._keyring.all()).keys() - {LOCAL})

    async def signing(self, id: str) -> list[str]:
        """Give the secrets that a key's messages are signed with now, the newest first; or `UnknownKey`."""
        _, key = await self._one(id)
        return [each.secret for each in key.secrets]

    async def rotate(self, id: str, keep: int = KEPT) -> Key:
        """Give a key a new callback secret; what signed so far goes on for so many microseconds at most."""
        while True:
            written, old = await self._one(id)
            end = self._now() + keep
            kept = [each._replace(until=min(each.until or end, end)) for each in old.secrets if keep]
            new = replace(old, secrets=(_new_secret(), *kept[: MOST_SECRETS - 1]))
            if await self._keyring.change(id, written, encode_json(new)):
                return new

    async def _one(self, id: str) -> tuple[bytes, Key]:
        found = await self._found()
        if id not in found:
            raise UnknownKey(id)
        return found[id]

    async def _found(self) -> dict[str, tuple[bytes, Key]]:
        """Give each key as it is written, and as it is now."""
        found = await self._keyring.all()
        if LOCAL not in found:
            await self._keyring.change(LOCAL, None, encode_json(self._new_local()))
            found = await self._keyring.all()
        now = self._now()
        return {id: (written, _at(now, _read(written))) for id, written in found.items()}

    def _new_local(self) -> Key:
        return Key(LOCAL, "callers on loopback", "admin", self._now(), secrets=(_new_secret(),))

    def _now(self) -> int:
        return round(self._clock() * 1_000_000)


def key_document(key: Key) -> Document:
    """Give a key as an admin sees it, with its callback secrets and never with the key itself."""
    return {
        "id": key.id,
        "name": key.name,
        "role": key.role,
        "queues": list(key.queues),
        "submitters": list(key.submitters),
        "created_at": iso(key.created_at),
        "expires_at": iso_or_none(key.expires_at),
        "revoked": key.revoked,
        "secrets": [{"secret": each.secret, "until": iso_or_none(each.until)} for each in key.secrets],
    }


def _at(now: int, key: Key) -> Key:
    """Leave out the secrets whose time is over."""
    return replace(key, secrets=tuple(each for each in key.secrets if not each.until or each.until > now))


def _new_secret() -> Secret:
    return Secret(PREFIX + b64encode(secrets.token_bytes(SECRET_BYTES)).decode())
