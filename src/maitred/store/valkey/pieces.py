"""What runs say and keep, as bytes: the other half of `lua/lib/speech.lua`."""

import struct
from collections.abc import Iterable, Sequence
from typing import get_args

from maitred.core.output import Artifact, Chunk, Part, Stream
from maitred.store.valkey.records import Reader, raw, text

STREAMS: tuple[Stream, ...] = get_args(Stream)
_PART = struct.Struct("<BdI")
_PIECE = struct.Struct("<dHBd")
_HEAD = struct.Struct("<ddd16sd")


def encode_parts(parts: Sequence[Part]) -> bytes:
    """Write what a run says, with a byte before that tells whether it says how far it is."""
    if not parts:
        return b""
    progress = any(part.stream == "progress" for part in parts)
    written = (_PART.pack(STREAMS.index(stream), cut, len(data)) + data for stream, data, cut in parts)
    return bytes([progress]) + b"".join(written)


def decode_chunk(number: int, piece: bytes) -> Chunk:
    """Read a piece as it is kept."""
    at, attempt, stream, cut = _PIECE.unpack_from(piece)
    return Chunk(number, int(at), attempt, STREAMS[stream], piece[_PIECE.size :], int(cut))


def decode_head(head: bytes) -> tuple[int, int, int, bytes, int]:
    """Read first and last number of a stream, what its pieces count, who spoke last and how many parts."""
    first, last, size, speaker, heard = _HEAD.unpack(head)
    return int(first), int(last), int(size), speaker, int(heard)


def encode_artifacts(artifacts: Iterable[Artifact]) -> list[bytes]:
    """Write files as arguments."""
    return [part for name, kind, data in artifacts for part in (raw(name), raw(kind), data)]


def decode_artifact(name: str, kept: bytes) -> Artifact:
    """Read a file as it is kept."""
    reader = Reader(kept, 0)
    kind = text(reader.take(2))
    return Artifact(name, kind, kept[reader.at :])
