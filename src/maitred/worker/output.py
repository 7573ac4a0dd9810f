"""What a program prints: read as fast as it comes, the last part kept, the first part streamed.

A program that prints ten gigabytes costs no more memory than one that prints a page. Whoever watches sees the
beginning live, up to the queue's limit; when the program ends, the last part with a count of what was cut.
"""

import asyncio
import contextlib
import fcntl
import os
from collections.abc import Callable

from maitred.core.output import Stream

TAIL_LIMIT = 64 * 1024
_PIPE = 1 << 20
_CHUNK = 1 << 18

OnOutput = Callable[[Stream, bytes], None]
# The stream, the data, and how many bytes before it were left out.
Say = Callable[[Stream, bytes, int], None]


class Tail:
    """The last part of what was printed, and how much there was."""

    def __init__(self) -> None:
        self.kept = bytearray()
        self.size = 0

    def add(self, data: bytes) -> None:
        """Take more."""
        self.size += len(data)
        self.kept += data
        if len(self.kept) > 4 * TAIL_LIMIT:
            del self.kept[:-TAIL_LIMIT]

    def text(self) -> str:
        """Give the text, with a note where its beginning was cut."""
        kept = bytes(self.kept[-TAIL_LIMIT:])
        cut = self.size - len(kept)
        note = f"[{cut} bytes cut]\n" if cut else ""
        return note + kept.decode("utf-8", "replace")


class Printed:
    """One stream of a program: a pipe that it prints into, read by the loop.

    The pipe is not the program's own object, so that waiting for its end does not wait for others who still
    hold the other side. It is closed here and nowhere else: a transport of uvloop closes the number of a pipe
    and lets its file object do that once more, when the number may be somebody else's.
    """

    def __init__(self, stream: Stream, heard: OnOutput | None) -> None:
        self.stream, self._heard = stream, heard
        self.tail = Tail()
        self._loop = asyncio.get_running_loop()
        self.over = self._loop.create_future()
        self._out, self.into = os.pipe()
        os.set_blocking(self._out, False)
        with contextlib.suppress(OSError):
            fcntl.fcntl(self.into, fcntl.F_SETPIPE_SZ, _PIPE)

    def listen(self) -> None:
        """Begin to read; `over` tells the end."""
        self._loop.add_reader(self._out, self._read)

    def close(self) -> None:
        """Read no more, if that is not so already."""
        if not self.over.done():
            self._loop.remove_reader(self._out)
            os.close(self._out)
            self.over.set_result(None)

    def _read(self) -> None:
        try:
            data = os.read(self._out, _CHUNK)
        except BlockingIOError:
            return
        if not data:
            self.close()
            return
        self.tail.add(data)
        if self._heard:
            self._heard(self.stream, data)


class Telling:
    """Streams the beginning of what a run prints, and at its end the last part of each stream.

    `say` gets the parts in order. What lies between is counted, and the last part says how much it was. With
    two streams there is room left in `limit` for what the pieces cost beside their data.
    """

    def __init__(self, say: Say, limit: int) -> None:
        self._tail = min(TAIL_LIMIT, limit // 6)
        self._say, self._left = say, limit - 3 * self._tail
        self._tails: dict[Stream, Tail] = {}

    def heard(self, stream: Stream, data: bytes) -> None:
        """Pass on what a program printed, or count it if it is past the limit."""
        if stream in self._tails:
            self._tails[stream].add(data)
            return
        now, rest = data[: self._left], data[self._left :]
        self._left -= len(now)
        if now:
            self._say(stream, now, 0)
        if rest:
            self._tails[stream] = Tail()
            self._tails[stream].add(rest)

    def end(self) -> None:
        """Say the last parts; there are none where everything was streamed."""
        most = min(TAIL_LIMIT, 2 * self._tail // max(1, len(self._tails)))
        for stream, tail in self._tails.items():
            kept = bytes(tail.kept[max(0, len(tail.kept) - most) :])
            self._say(stream, kept, tail.size - len(kept))
        self._tails.clear()
