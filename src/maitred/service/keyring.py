"""The API keys: who may call, and with which secret what they asked for is signed when it is told to them.

There is always the key `local`: whoever calls on loopback without a key. Its secret is made when it is first
needed. A secret that was replaced goes on to sign beside the new one for a time, so that receivers can change
over without missing a message.

A key is `mk_ID_SECRET`. Only its sha256 is kept, so it can be shown once, when it is made. One that was
revoked stays in the list: what it did is told under its name.
"""

import hmac
import secrets
import time
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Literal, NamedTuple

import msgspec

from maitred.core.settings import DAY
from maitred.errors import Conflict, StoreError, UnknownKey
from maitred.service.document import Document
from maitred.service.moment import iso, iso_or_none
from maitred.store.port import Keyring
from maitred.webhooks import PREFIX
from maitred.wire import encode_json

LOCAL = "local"
KEPT = DAY
SECRET_BYTES = 32
KEY_PREFIX = "mk_"
_NOBODY = "0" * 64
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


class MadeKey(NamedTuple):
    """A key's record, and the key itself where a new one was made."""

    record: Key
    key: str | None


_read = msgspec.json.Decoder(Key).decode


class Keys:
    """What can be done with the keys of one place."""

    def __init__(self, keyring: Keyring, clock: Callable[[], float] = time.time) -> None:
        self._keyring = keyring
        self._clock = clock

    async def all(self) -> list[Key]:
        """Give all keys in the order in which they were made, each with the secrets that sign now."""
        await self._one(LOCAL)
        now, records = self._now(), map(_readable, (await self._keyring.all()).values())
        return sorted((_at(now, key) for key in records if key), key=lambda key: (key.created_at, key.id))

    async def any_made(self) -> bool:
        """Tell whether a key was made, be it revoked by now: then strangers may be among the callers."""
        return bool((await self._keyring.all()).keys() - {LOCAL})

    async def signing(self, id: str) -> list[str]:
        """Give the secrets that a key's messages are signed with now, the newest first; or `UnknownKey`."""
        _, key = await self._one(id)
        return [each.secret for each in key.secrets]

    async def good(self) -> "Ring":
        """Give the keys by which callers are known now."""
        found = await self._keyring.all()
        made = found.keys() - {LOCAL}
        records = [_readable(found[id]) for id in made]
        return Ring({key.id: key for key in records if key}, any_made=bool(made))

    async def create(
        self,
        role: Role,
        *,
        name: str = "",
        queues: Sequence[str] = (),
        submitters: Sequence[str] = (),
        lifetime: int = 0,
    ) -> MadeKey:
        """Make a key; `lifetime` is in microseconds, 0 is for ever."""
        while True:
            id, now = secrets.token_hex(6), self._now()
            key = _new_key(id)
            record = Key(
                id,
                name or id,
                role,
                now,
                queues=tuple(queues),
                submitters=tuple(submitters),
                sha256=_digest(key),
                expires_at=now + lifetime if lifetime else 0,
                secrets=(_new_secret(),),
            )
            if await self._keyring.change(id, None, encode_json(record)):
                return MadeKey(record, key)

    async def rotate(self, id: str, keep: int = KEPT) -> Key:
        """Give a key a new callback secret; what signed so far goes on for so many microseconds at most."""
        return (await self._rotate(id, keep, new_key=False)).record

    async def renew(self, id: str, keep: int = KEPT) -> MadeKey:
        """Give a new callback secret, and a new key: the one before is no longer good.

        Raises `UnknownKey`, or `Conflict` for `local`, and for a key that was revoked.
        """
        return await self._rotate(id, keep, new_key=True)

    async def _rotate(self, id: str, keep: int, *, new_key: bool) -> MadeKey:
        while True:
            written, old = await self._one(id)
            if new_key:
                _must_be_made(old)
            end = self._now() + keep
            kept = [each._replace(until=min(each.until or end, end)) for each in old.secrets if keep]
            new = replace(old, secrets=(_new_secret(), *kept[: MOST_SECRETS - 1]))
            key = _new_key(id) if new_key else None
            if key:
                new = replace(new, sha256=_digest(key))
            if await self._keyring.change(id, written, encode_json(new)):
                return MadeKey(new, key)

    async def revoke(self, id: str) -> Key:
        """Let a key be good no longer; `UnknownKey`, or `Conflict` for `local`, or if it was revoked before.

        Its record stays, and its secret goes on to sign what was asked for with it.
        """
        while True:
            written, old = await self._one(id)
            _must_be_made(old)
            new = replace(old, revoked=True)
            if await self._keyring.change(id, written, encode_json(new)):
                return new

    async def _one(self, id: str) -> tuple[bytes, Key]:
        """Give a key as it is written, and as it is now; `UnknownKey`, `StoreError` if none can read it."""
        written = await self._keyring.get(id)
        if written is None and id == LOCAL:
            await self._keyring.change(LOCAL, None, encode_json(self._new_local()))
            written = await self._keyring.get(LOCAL)
        if written is None:
            raise UnknownKey(id)
        record = _readable(written)
        if record is None:
            raise StoreError(f"the key {id} was written by another version of Maitred")
        return written, _at(self._now(), record)

    def _new_local(self) -> Key:
        return Key(LOCAL, "callers on loopback", "admin", self._now(), secrets=(_new_secret(),))

    def _now(self) -> int:
        return round(self._clock() * 1_000_000)


class Ring:
    """The keys that were made, as they were when they were read."""

    def __init__(self, keys: Mapping[str, Key], *, any_made: bool) -> None:
        self._keys = keys
        self.any_made = any_made

    def still(self, record: Key, now: float) -> bool:
        """Tell whether a key that was found before is still good."""
        found = self._keys.get(record.id)
        return bool(found and found.sha256 == record.sha256 and _good(found, now))

    def find(self, key: str, now: float) -> Key | None:
        """Give the record of a key that is good at this time, in seconds; its check takes always as long."""
        id = key.removeprefix(KEY_PREFIX).partition("_")[0]
        record = self._keys.get(id)
        fits = hmac.compare_digest(record.sha256 if record else _NOBODY, _digest(key))
        return record if record and fits and _good(record, now) else None


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


def _good(key: Key, now: float) -> bool:
    """Tell whether a key is neither revoked nor expired, at a time in seconds."""
    return not key.revoked and not (key.expires_at and key.expires_at <= now * 1_000_000)


def _must_be_made(key: Key) -> None:
    if key.id == LOCAL:
        raise Conflict("local is whoever calls on loopback while there are no keys, and has none itself")
    if key.revoked:
        raise Conflict(f"the key {key.id} was revoked")


def _readable(written: bytes) -> Key | None:
    """Give a record; one that cannot be read is nobody's key."""
    try:
        return _read(written)
    except msgspec.DecodeError:
        return None


def _new_key(id: str) -> str:
    return f"{KEY_PREFIX}{id}_{secrets.token_urlsafe(SECRET_BYTES)}"


def _digest(key: str) -> str:
    return sha256(key.encode(errors="surrogatepass")).hexdigest()


def _at(now: int, key: Key) -> Key:
    """Leave out the secrets whose time is over."""
    return replace(key, secrets=tuple(each for each in key.secrets if not each.until or each.until > now))


def _new_secret() -> Secret:
    return Secret(PREFIX + b64encode(secrets.token_bytes(SECRET_BYTES)).decode())
