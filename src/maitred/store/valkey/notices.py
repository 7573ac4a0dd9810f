"""Notices and their deliveries as bytes, and the verbs on them: the other half of `lua/lib/notices.lua`."""

import struct
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Literal

from maitred.core.notices import Delivery, Notice, NoticeErrand, NoticeKind, NoticeLock, Pending
from maitred.store.valkey.records import Page, Reader, decode_view, raw, record_key, text
from maitred.store.valkey.refusals import refuse

_NOTICE = struct.Struct("<8sdcdHB")
_TRY = struct.Struct("<dcdIcdd")
_LENGTH = struct.Struct("<H")
_KINDS: dict[bytes, NoticeKind] = {b"s": "started", b"r": "requeued", b"e": "ended"}
_KIND_CODES = {kind: code for code, kind in _KINDS.items()}
_ANSWERS: dict[bytes, Literal["sent", "again", "refused"]] = {b"s": "sent", b"a": "again", b"r": "refused"}
_ANSWER_CODES = {answer: code for code, answer in _ANSWERS.items()}


def decode_notice(data: bytes, tries: int) -> Pending:
    """Read a notice as it is kept."""
    record, number, kind, at, attempt, stage = _NOTICE.unpack_from(data)
    reader = Reader(data, _NOTICE.size)
    worker, code = text(reader.take(2)), text(reader.take(1))
    notice = Notice(int(number), _KINDS[kind], int(at), attempt, stage, worker, code, tries)
    if reader.at < len(data):
        notice = notice._replace(message=text(reader.take(4)), result=reader.take(4))
    return Pending(int.from_bytes(record, "big"), notice)


def decode_head(data: bytes) -> tuple[int, NoticeLock]:
    """Read how often the first notice of a job was tried, and who has locked it."""
    reader = Reader(data, 2)
    token, owner = reader.take(1), text(reader.take(2))
    return int.from_bytes(data[:2], "little"), NoticeLock(owner, token)


def encode_try(delivery: Delivery) -> bytes:
    """Write a try at a notice."""
    return _TRY.pack(
        delivery.number,
        _KIND_CODES[delivery.kind],
        delivery.at,
        delivery.tries,
        _ANSWER_CODES[delivery.answer],
        delivery.took,
        delivery.again_at,
    ) + raw(delivery.said)


def decode_tries(data: bytes) -> list[Delivery]:
    """Read the log of a version, oldest first."""
    found, reader = [], Reader(data, 0)
    while reader.at < len(data):
        entry = reader.take(_LENGTH.size)
        number, kind, at, tries, answer, took, again_at = _TRY.unpack_from(entry)
        said = text(entry[_TRY.size :])
        found.append(
            Delivery(
                int(number), _KINDS[kind], int(at), tries, _ANSWERS[answer], said, int(took), int(again_at)
            )
        )
    return found


class NoticeVerbs(ABC):
    """The part of a queue on a server that tells submitters what became of their jobs."""

    queue: str

    @abstractmethod
    async def _call(self, verb: str, *args: Any) -> Any:
        """Call a script."""

    async def attend(self, ids: Sequence[str]) -> None:
        """Note that somebody watches jobs."""
        if ids:
            await self._call("attend", *(raw(id) for id in ids))

    async def lock_notices(self, owner: str, token: bytes, limit: int) -> list[NoticeErrand]:
        """Lock notices that are due."""
        *page, flat = await self._call("lock_notices", raw(owner), token, limit)
        shown = Page.read(*page)
        return [
            NoticeErrand(decode_view(flat[i], shown), decode_notice(flat[i + 1], flat[i + 2]).notice)
            for i in range(0, len(flat), 3)
        ]

    async def told_notice(self, record: int, number: int, token: bytes, delivery: Delivery) -> None:
        """Log a try at a notice."""
        tried = encode_try(delivery.shortened()._replace(number=number))
        again_at = delivery.again_at
        answer = await self._call("told_notice", record_key(record), number, token, tried, again_at)
        refuse(answer, self.queue)

    async def deliveries(self, id: str, version: int | None = None) -> list[Delivery] | None:
        """Show the last tries at the notices of a job."""
        answer = await self._call("deliveries", raw(id), "" if version is None else version)
        return decode_tries(answer[0]) if answer else None
