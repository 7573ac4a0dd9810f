"""The sync faces: shared by threads, and left in order by whoever interrupts them."""

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from maitred.background import Blocking

INTERRUPTED = """
import asyncio, os, signal, threading
from maitred.background import Blocking, iterating

heard = threading.Event()

def interrupt():
    # One that comes just before the main thread blocks is not heard before the next.
    while not heard.wait(0.2):
        os.kill(os.getpid(), signal.SIGINT)

class Face:
    async def items(self):
        try:
            yield 1
            threading.Thread(target=interrupt).start()
            await asyncio.Event().wait()
        finally:
            heard.set()
            await asyncio.sleep(0.01)
            print("left")

class Sync(Blocking):
    items = iterating(Face.items)

try:
    for item in Sync(Face).items():
        print(item)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_whoever_interrupts_an_iterator_leaves_it_in_order() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=50, check=False
    )
    assert (ran.stdout.split(), ran.stderr) == (["1", "left", "interrupted"], "")


def test_threads_that_begin_at_once_share_one_face() -> None:
    made = []

    def make() -> object:
        time.sleep(0.01)  # so that others ask meanwhile
        made.append(object())
        return made[-1]

    blocking = Blocking(make)
    with ThreadPoolExecutor(8) as threads:
        faces = list(threads.map(lambda _: blocking.face(), range(8)))
    assert faces == made * 8
