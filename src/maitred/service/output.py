"""What a job said, as it is read from the store and shown."""

from collections.abc import AsyncIterator

from maitred.core.output import Chunk, Output
from maitred.service.document import Document, progress_document
from maitred.service.moment import iso
from maitred.store.port import Store

READ_AT_ONCE = 500


async def pages(store: Store, id: str, version: int | None, after: int) -> AsyncIterator[Output]:
    """Give what a job said after this piece, in pages, at least one; nothing if there is no such job."""
    while page := await store.output(id, version, after, READ_AT_ONCE):
        yield page
        if not page.chunks or page.chunks[-1].number == page.last:
            return
        after = page.chunks[-1].number


async def read_on(store: Store, id: str, version: int, after: int) -> tuple[list[Chunk], bool]:
    """Give all that a job said after this piece, and whether something of that is no longer kept."""
    chunks: list[Chunk] = []
    gap = False
    async for page in pages(store, id, version, after):
        gap = gap or page.first > after + 1
        chunks += page.chunks
        after = page.chunks[-1].number if page.chunks else after
    return chunks, gap


def chunk_document(chunk: Chunk) -> Document:
    """Give a piece with its text."""
    return {
        "number": chunk.number,
        "at": iso(chunk.at),
        "attempt": chunk.attempt,
        "stream": chunk.stream,
        "text": chunk.data.decode(errors="replace"),
        "cut": chunk.cut,
    }


def step_document(chunk: Chunk) -> Document:
    """Give a piece that says how far a job is."""
    numbered: Document = {"number": chunk.number, "at": iso(chunk.at), "attempt": chunk.attempt}
    return numbered | (progress_document(chunk.data) or {})
