"""Asking: one client for one question, at a server or at the store itself, and telling what was answered."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from os import environ
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel

from maitred.cli import options
from maitred.cli.address import find_server
from maitred.cli.printing import print_json
from maitred.client import Client
from maitred.errors import ConfigError, ServerUnreachable

KEY = "MAITRED_KEY"
KEY_FILE: ContextVar[Path | None] = ContextVar("KEY_FILE", default=None)

T = TypeVar("T")
Told = TypeVar("Told", bound=BaseModel | Mapping[str, Any])


@dataclass(frozen=True, kw_only=True)
class Server:
    """The server that a command asks."""

    server: options.Server = None
    data: options.Data = options.DEFAULT_DATA

    def address(self) -> str:
        """Give the address that is named or noted; `ServerUnreachable` if there is none."""
        return find_server(self.server, self.data)


@dataclass(frozen=True, kw_only=True)
class Where(Server):
    """Where a command asks, and how it tells the answer."""

    store: options.AskedStore = None
    local: options.Local = False
    as_json: options.Json = False

    def ask(self, question: Callable[[Client], Awaitable[T]], *, or_store: bool = False) -> T:
        """Ask the server that is named or noted, or the store itself if that is wanted.

        With `or_store` the store is asked too where no server is named and none runs. Else that is
        `ServerUnreachable`.
        """
        if not (self.local or self.store):
            try:
                return asyncio.run(self._ask(question))
            except ServerUnreachable:
                if self.server or not or_store:
                    raise
        # What is needed for it takes long to import, and those who only ask should not wait for it.
        from maitred.cli.at_store import ask_store  # noqa: PLC0415

        return ask_store(self.data, self.store, question, make=or_store)

    def tell(
        self,
        question: Callable[[Client], Awaitable[Told]],
        show: Callable[[Told], object],
        *,
        or_store: bool = False,
    ) -> None:
        """Ask, and print what is answered: as `show` does it for people, or as JSON."""
        self.print(self.ask(question, or_store=or_store), show)

    def print(self, answer: Told, show: Callable[[Told], object]) -> None:
        """Print an answer: as `show` does it for people, or as JSON."""
        if self.as_json:
            print_json(answer)
        else:
            show(answer)

    async def _ask(self, question: Callable[[Client], Awaitable[T]]) -> T:
        async with Client(self.address(), key=find_key(), retries=()) as client:
            return await question(client)


@dataclass(frozen=True, kw_only=True)
class InQueue(Where):
    """Where a command asks about a queue."""

    queue: options.Queue = options.DEFAULT_QUEUE


def find_key() -> str | None:
    """Give the API key: from the file that --key-file names, or else from MAITRED_KEY."""
    file = KEY_FILE.get()
    if file is not None:
        try:
            return file.read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"--key-file: {file} cannot be read: {error}.") from error
    return environ.get(KEY, "").strip() or None
