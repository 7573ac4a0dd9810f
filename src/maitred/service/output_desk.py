"""What jobs said and left behind, for whoever asks."""

from codecs import getincrementaldecoder
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, get_args

from maitred.core.output import Artifact, Chunk, Output, Stream
from maitred.errors import Fault, InvalidJob, UnknownArtifact, UnknownJob
from maitred.service.document import Document
from maitred.service.output import READ_AT_ONCE, chunk_document, pages

if TYPE_CHECKING:
    from maitred.service.desk import Desk

STREAMS: tuple[str, ...] = get_args(Stream)
# What is for people to read; the others are for programs.
TEXT = ("stdout", "stderr", "log", "tty")
BEGINNING_CUT = "[the beginning is not kept any more]\n"


class OutputDesk:
    """Output and artifacts of the jobs in the queues of a desk."""

    def __init__(self, desk: "Desk") -> None:
        self._desk = desk

    async def output(
        self,
        queue: str,
        id: str,
        version: int | None = None,
        *,
        stream: str | None = None,
        begin: int = 1,
        limit: int = READ_AT_ONCE,
    ) -> Document:
        """Give pieces from a number on, of all streams or of one; `UnknownJob`, or `InvalidJob`."""
        wanted = STREAMS if stream is None else _one(stream)
        items: list[Document] = []
        following = begin
        async for page in self._pages(queue, id, version, begin):
            for chunk in page.chunks:
                if len(items) < limit:
                    following = chunk.number + 1
                    items += [chunk_document(chunk)] if chunk.stream in wanted else []
            if len(items) == limit:
                break
        following = max(following, page.first)
        return {"items": items, "first": page.first, "next": following, "ended": page.ended}

    async def text(
        self, queue: str, id: str, version: int | None = None, *, stream: str | None = None, begin: int = 1
    ) -> str:
        """Give all that is kept as one text, with a line where something was cut; the same errors."""
        wanted = TEXT if stream is None else _one(stream)
        text = _Text()
        note = None
        async for page in self._pages(queue, id, version, begin):
            if note is None:
                note = BEGINNING_CUT if page.first > begin else ""
            for chunk in page.chunks:
                if chunk.stream in wanted:
                    text.add(chunk)
        return (note or "") + text.end()

    async def artifact(self, queue: str, id: str, name: str, version: int | None = None) -> Artifact:
        """Give a file that is kept of a job; `UnknownJob` or `UnknownArtifact`."""
        found = await self._desk.store(queue).artifact(id, version, name)
        if found is None:
            await self._desk.read(queue, id, version)
            raise UnknownArtifact
        return found

    async def _pages(self, queue: str, id: str, version: int | None, begin: int) -> AsyncIterator[Output]:
        page = None
        async for page in pages(self._desk.store(queue), id, version, begin - 1):
            yield page
        if page is None:
            raise UnknownJob(queue, id)


class _Text:
    """Puts pieces together; a character may begin in one piece of a stream and end in the next."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._decoders = {name: getincrementaldecoder("utf-8")("replace") for name in STREAMS}

    def add(self, chunk: Chunk) -> None:
        """Append a piece."""
        decoder = self._decoders[chunk.stream]
        if chunk.cut:
            self._append(decoder.decode(b"", final=True))
            self._append("\n" if self._parts and not self._parts[-1].endswith("\n") else "")
            self._append(f"[{chunk.cut} bytes cut]\n")
        self._append(decoder.decode(chunk.data))

    def end(self) -> str:
        """Give the whole text."""
        return "".join([*self._parts, *(each.decode(b"", final=True) for each in self._decoders.values())])

    def _append(self, text: str) -> None:
        if text:
            self._parts.append(text)


def _one(stream: str) -> tuple[str, ...]:
    if stream not in STREAMS:
        raise InvalidJob([Fault("stream", f"must be one of {', '.join(STREAMS)}")])
    return (stream,)
