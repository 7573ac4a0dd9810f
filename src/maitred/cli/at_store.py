"""Asking the store itself, where there is no server or none is wanted: the same calls, answered here.

The store is the one that is named, the settings', or that of a data directory. If no embedded store runs on
that, one is started for the time of the question. Whoever has the store needs no key.
"""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from maitred import config
from maitred.cli.in_process import InProcess
from maitred.cli.logs import logging_to
from maitred.client import Client
from maitred.errors import StoreUnavailable
from maitred.http import create_app
from maitred.service.caller import HOUSE, Caller
from maitred.service.desk import Desk
from maitred.service.door import Door
from maitred.service.foresights import Foresights
from maitred.service.per_queue import begin, end
from maitred.service.whereabouts import embedded_url
from maitred.store.connect import connect
from maitred.store.valkey.embedded import Embedded

HOST = "store"
ADDRESS = "the store"

T = TypeVar("T")


def ask_store(
    data: Path, store: str | None, question: Callable[[Client], Awaitable[T]], *, make: bool = False
) -> T:
    """Ask the store itself; `make` a data directory for it where there is none, or else refuse."""
    with logging_to(sys.stderr), contextlib.ExitStack() as running:
        url = store or config.load().store.url
        if url is None:
            try:
                url = embedded_url(data)
            except StoreUnavailable:
                if not (make or data.is_dir()):
                    raise
                url = running.enter_context(Embedded(data)).url

        async def asking() -> T:
            async with _at(url) as client:
                return await question(client)

        return asyncio.run(asking())


@contextlib.asynccontextmanager
async def _at(url: str) -> AsyncIterator[Client]:
    stores = connect(url)
    foresights = Foresights(stores)
    desk = Desk(stores, foresights=foresights)
    desk.door = _OpenDoor(desk.keys)
    # There is nobody but this one caller: what else a server does is left to servers.
    foreseeing = begin("foresights", foresights.run())
    try:
        await asyncio.sleep(0)
        app = create_app(desk, hosts=[HOST])
        async with Client(f"http://{HOST}", transport=InProcess(app)) as client:
            yield client
    finally:
        await end([foreseeing])
        await stores.close()


class _OpenDoor(Door):
    """Knows one caller only."""

    async def admit_key(self, key: str | None, address: str) -> Caller:
        """Let whoever has the store in."""
        del key, address
        return Caller(HOUSE.key, ADDRESS)

    async def still(self, caller: Caller) -> bool:
        """Let them stay."""
        del caller
        return True
