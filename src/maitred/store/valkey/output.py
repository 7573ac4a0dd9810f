"""What runs say and keep on Valkey or Redis: each verb is one call of a script."""

from collections.abc import Sequence
from typing import Any

from maitred.core.job import Lease
from maitred.core.output import Artifact, Output, Saying, merged, unique
from maitred.errors import TooLarge
from maitred.store.valkey.ledger import LedgerVerbs
from maitred.store.valkey.pieces import decode_artifact, decode_chunk, encode_artifacts, encode_parts
from maitred.store.valkey.records import raw, record_key


class OutputVerbs(LedgerVerbs):
    """The part of a queue's store that runs speak to."""

    async def say(self, worker: str, sayings: Sequence[Saying]) -> list[Lease]:
        """Keep what runs say."""
        all_said = merged(sayings)
        args: list[Any] = []
        for (record, token), parts, before in all_said:
            args += (record_key(record), token, before, encode_parts(parts))
        heard = set(await self._call("say", worker, *args))
        return [saying.lease for at, saying in enumerate(all_said) if at not in heard]

    async def output(self, id: str, version: int | None, after: int, limit: int) -> Output | None:
        """Show what a job said."""
        wanted = "" if version is None else version
        answer = await self._call("output", raw(id), wanted, after, limit)
        if not answer:
            return None
        record, ended, first, last, flat = answer
        chunks = [decode_chunk(flat[i], flat[i + 1]) for i in range(0, len(flat), 2)]
        return Output(record, chunks, first, last, bool(ended))

    async def keep(self, worker: str, lease: Lease, artifacts: Sequence[Artifact]) -> None:
        """Keep the files of a run."""
        files = encode_artifacts(unique(artifacts))
        answer = await self._call("keep", worker, record_key(lease.record), lease.token, *files)
        self._refuse(answer)
        size, limit = answer
        if size > limit:
            raise TooLarge(size, limit, "what it keeps")

    async def artifact(self, id: str, version: int | None, name: str) -> Artifact | None:
        """Give a file that is kept of a job."""
        kept = await self._call("artifact", raw(id), "" if version is None else version, raw(name))
        return decode_artifact(name, kept) if kept else None

    async def type_in(self, record: int, data: bytes, size: tuple[int, int] | None) -> bool:
        """Tell the worker of a run what somebody types for it."""
        answer = await self._call("type_in", record_key(record), *(size or (0, 0)), data)
        self._refuse(answer)
        return bool(answer[0])
