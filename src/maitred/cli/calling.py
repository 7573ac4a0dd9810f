"""Asking a server: one client for one question, with the API key that is at hand."""

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from os import environ
from pathlib import Path
from typing import TypeAlias, TypeVar

from maitred.cli.address import find_server
from maitred.client import Client
from maitred.client.keys import KeyPort
from maitred.errors import ConfigError, ServerUnreachable

KEY = "MAITRED_KEY"
KEY_FILE: ContextVar[Path | None] = ContextVar("KEY_FILE", default=None)

T = TypeVar("T")
KeyQuestion: TypeAlias = Callable[[KeyPort], Awaitable[T]]


def ask(server: str | None, data: Path, question: Callable[[Client], Awaitable[T]]) -> T:
    """Ask the server that is named or noted; `ServerUnreachable` if there is none."""

    async def asking() -> T:
        async with Client(find_server(server, data), key=find_key(), retries=()) as client:
            return await question(client)

    return asyncio.run(asking())


def ask_or_look(
    server: str | None, data: Path, question: KeyQuestion[T], *, store: str | None, local: bool
) -> T:
    """Ask a server about keys; or the store itself if that is wanted, or no server is named and none runs."""
    if not local:
        try:
            return ask(server, data, question)
        except ServerUnreachable:
            if server:
                raise
    # What is needed for it takes long to import, and those who only ask should not wait for it.
    from maitred.cli.local_keys import look  # noqa: PLC0415

    return look(data, store, question)


def find_key() -> str | None:
    """Give the API key: from the file that --key-file names, or else from MAITRED_KEY."""
    file = KEY_FILE.get()
    if file is not None:
        try:
            return file.read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"--key-file: {file} cannot be read: {error}.") from error
    return environ.get(KEY, "").strip() or None
