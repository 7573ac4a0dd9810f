"""The pipes that programs print into: read to their end, and closed once."""

import asyncio
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import uvloop

from maitred.worker.output import Printed

THREADS, READERS, PIPES = 4, 4, 3_000


def _write(path: Path, over: Event) -> int:
    """Open, write and close a file again and again; OSError if somebody else closed it."""
    count = 0
    while not over.is_set():
        file = os.open(path, os.O_WRONLY | os.O_CREAT)
        time.sleep(0)
        os.write(file, b"x")
        os.close(file)
        count += 1
    return count


async def _read() -> int:
    size = 0
    for _ in range(PIPES):
        printed = Printed("stdout", None)
        printed.listen()
        os.write(printed.into, b"x")
        os.close(printed.into)
        await printed.over
        size += printed.tail.size
        await asyncio.sleep(0)
    return size


def test_reading_what_programs_print_closes_nobody_elses_file(tmp_path: Path) -> None:
    async def read_all() -> list[int]:
        return await asyncio.gather(*(_read() for _ in range(READERS)))

    over = Event()
    with ThreadPoolExecutor(THREADS) as threads:
        writing = [threads.submit(_write, tmp_path / str(number), over) for number in range(THREADS)]
        try:
            assert uvloop.run(read_all()) == [PIPES] * READERS
        finally:
            over.set()
        assert all(each.result() > 0 for each in writing)


async def test_a_pipe_that_is_given_up_is_over_and_may_be_closed_again() -> None:
    printed = Printed("stderr", None)
    printed.listen()
    printed.close()
    assert printed.over.done()
    printed.close()
    os.close(printed.into)
