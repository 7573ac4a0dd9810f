"""Cursors: where a list goes on, as text that callers hand back and need not understand.

A cursor carries a checksum, so that one that was cut short or mistyped is refused instead of read as
something else.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import blake2b
from typing import NamedTuple

import msgspec

from maitred.errors import Fault, InvalidJob

_CHECKSUM = 4
# The one section of a list that has no others.
_PLAIN = -1


class Spot(NamedTuple):
    """A spot in a list of sections: which one, how far into it, and how many items there are in all.

    `page` is the store's own cursor, in the section where the store has one. `total` is -1 where it was not
    counted. `shown` is the id of a job that was shown out of turn, and is not shown again.
    """

    section: int
    offset: int = 0
    page: bytes = b""
    total: int = -1
    shown: str = ""


def write_cursor(spot: Spot) -> str:
    """Give the text for a spot."""
    plain = msgspec.msgpack.encode(spot)
    return urlsafe_b64encode(_checksum(plain) + plain).rstrip(b"=").decode()


def read_cursor(text: str) -> Spot:
    """Read what `write_cursor` wrote; `InvalidJob` at `cursor` for anything else."""
    try:
        raw = urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
        checksum, plain = raw[:_CHECKSUM], raw[_CHECKSUM:]
        if checksum == _checksum(plain):
            return msgspec.msgpack.decode(plain, type=Spot)
    except ValueError:
        pass
    raise wrong_cursor()


def write_text_cursor(page: str) -> str:
    """Give the text for a cursor of the store's own."""
    return write_cursor(Spot(_PLAIN, page=page.encode()))


def read_text_cursor(text: str) -> str:
    """Read what `write_text_cursor` wrote; `InvalidJob` at `cursor` for anything else."""
    spot = read_cursor(text)
    if spot.section != _PLAIN:
        raise wrong_cursor()
    return spot.page.decode(errors="replace")


def wrong_cursor() -> InvalidJob:
    """Make the refusal of a cursor that belongs to no such list."""
    return InvalidJob([Fault("cursor", "must be the `next` of an earlier answer")])


def _checksum(plain: bytes) -> bytes:
    return blake2b(plain, digest_size=_CHECKSUM, person=b"maitred-cursor").digest()
