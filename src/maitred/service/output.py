"""Reading what a job said, from a piece on to the newest."""

from maitred.core.output import Chunk
from maitred.store.port import Store

CHUNKS_AT_ONCE = 64


async def read_on(store: Store, id: str, version: int, after: int) -> tuple[list[Chunk], bool]:
    """Give all that a job said after this piece, and whether something of that is no longer kept."""
    chunks: list[Chunk] = []
    gap = False
    while True:
        output = await store.output(id, version, after, CHUNKS_AT_ONCE)
        if output is None:
            return chunks, gap
        gap = gap or output.first > after + 1
        chunks += output.chunks
        if not output.chunks or output.chunks[-1].number >= output.last:
            return chunks, gap
        after = output.chunks[-1].number
