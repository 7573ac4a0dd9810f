"""What server and worker tell each other of a session: who has it, and how much arrived in each direction.

A server passes on what its client does with `write_relayed`; the worker answers in the session's stream, in
`control` pieces of JSON. A piece `{"client", "at"}` says who has the session from there on, and how many
bytes the terminal had shown until then; both directions are counted anew from there. So whoever reads the
stream knows who came last, wherever they are. `{"taken"}` counts the bytes that the program was given;
`{"status"}` is for the client itself. Neither side sends more than a window of bytes that the other has not
had: a program waits for its client, and a client for its program.
"""

import struct
from typing import NamedTuple

WINDOW = 256 << 10
CLIENT_BYTES = 8
_HEAD = struct.Struct(f">{CLIENT_BYTES}sQQ")


class Relayed(NamedTuple):
    """What a client typed, after so many bytes `before`, and how many bytes of the terminal it `had`."""

    client: bytes
    had: int
    before: int = 0
    data: bytes = b""


def write_relayed(relayed: Relayed) -> bytes:
    """Write it as the store passes it on."""
    return _HEAD.pack(relayed.client, relayed.had, relayed.before) + relayed.data


def read_relayed(text: bytes) -> Relayed:
    """Read what `write_relayed` wrote."""
    client, had, before = _HEAD.unpack_from(text)
    return Relayed(client, had, before, text[_HEAD.size :])


def window(output_limit: int) -> int:
    """Give how much may be on the way: what is kept of a session must hold it, and what is said beside it."""
    return max(1, min(WINDOW, output_limit // 4))
