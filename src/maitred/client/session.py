"""A session at a server: what is typed goes there, what the terminal shows comes back.

A connection that breaks is made anew, to whatever server is found then, and goes on at the byte where it was.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any, TypeAlias

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import (
    ConnectionClosed,
    InvalidHandshake,
    InvalidMessage,
    InvalidStatus,
    InvalidURI,
)

from maitred.client.problems import error_of
from maitred.client.sending import json_of, key_header, path_of
from maitred.errors import Fault, InvalidJob, MaitredError, ServerUnreachable, SessionDenied, StoreError

COMEBACK = 30.0
PATIENCE = 10.0
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 1.0
TAKEN_OVER = 4001

Told: TypeAlias = bytes | dict[str, Any]


class Session:
    """One session of a queue; `find` gives the server's address, anew for each connection.

    It calls with an API `key`, if there is one. `open` it, read what is `told` to its end, and `type_in` and
    `resize` beside that.
    """

    def __init__(
        self, find: Callable[[], str], queue: str, *, key: str | None = None, comeback: float = COMEBACK
    ) -> None:
        self.id = self.name = ""
        self._find, self._path, self._queue = find, path_of(queue, "interactive"), queue
        self._comeback = comeback
        self._headers = key_header(key)
        self._received = 0
        self._size: tuple[int, int] | None = None
        self._connection: ClientConnection | None = None

    @property
    def connected(self) -> bool:
        """Whether what is typed reaches the session at the moment."""
        return self._connection is not None

    async def open(self, frame: Mapping[str, Any]) -> None:
        """Start a session as the first frame asks.

        Raises `SessionDenied`, `InvalidJob`, `UnknownQueue`, `ServerUnreachable` or `StoreUnavailable`.
        """
        self._connection = await self._connect(frame)

    async def told(self) -> AsyncGenerator[Told, None]:
        """Give what the terminal shows, as bytes, and what is said beside it; `ended` is the last.

        Between two connections `{"status": "dropped"}` is told, and `{"status": "resumed"}`. `SessionDenied`
        if another client has the session now, or it is over; `ServerUnreachable` if there was no way back.
        """
        while connection := self._connection:
            try:
                async for message in connection:
                    if isinstance(message, bytes):
                        self._received += len(message)
                        yield message
                    else:
                        status = json.loads(message)
                        yield status
                        if status["status"] == "ended":
                            return
            except ConnectionClosed:
                pass
            if connection.close_code == TAKEN_OVER:
                raise SessionDenied("taken-over", "another client has taken the session up")
            self._connection = None
            yield {"status": "dropped"}
            self._connection = await self._come_back()
            yield {"status": "resumed"}

    async def type_in(self, data: bytes) -> None:
        """Type; nothing, while there is no connection."""
        await self._send(data)

    async def resize(self, size: tuple[int, int]) -> None:
        """Tell the size of the terminal: columns and rows."""
        self._size = size
        await self._send(json.dumps({"resize": size}))

    async def close(self) -> None:
        """Leave; the session goes on for a while and can be taken up again."""
        if self._connection:
            await self._connection.close()

    async def _send(self, message: str | bytes) -> None:
        if self._connection:
            try:
                await self._connection.send(message)
            except ConnectionClosed:
                return

    async def _come_back(self) -> ClientConnection:
        frame: dict[str, Any] = {"session": self.name, "received": self._received}
        pause, until = FIRST_PAUSE, asyncio.get_running_loop().time() + self._comeback
        while True:
            try:
                return await self._connect(frame | ({"terminal": self._size} if self._size else {}))
            except (ServerUnreachable, StoreError):
                if asyncio.get_running_loop().time() > until:
                    raise
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _connect(self, frame: Mapping[str, Any]) -> ClientConnection:
        address = self._find()
        try:
            connection = await connect(
                f"ws{address.removeprefix('http')}{self._path}",
                proxy=None,
                additional_headers=self._headers,
                compression=None,
                max_size=None,
                open_timeout=PATIENCE,
                ping_timeout=None,
            )
        except InvalidStatus as error:
            raise self._refused(error) from error
        except (OSError, TimeoutError, InvalidHandshake, InvalidMessage, InvalidURI) as error:
            raise ServerUnreachable(f"No server answers at {address}.") from error
        try:
            await self._greet(connection, frame)
        except BaseException:
            await connection.close()
            raise
        return connection

    async def _greet(self, connection: ClientConnection, frame: Mapping[str, Any]) -> None:
        try:
            await connection.send(json_of(frame).decode())
            answer = json.loads(await connection.recv())
        except ConnectionClosed as error:
            raise ServerUnreachable("The server hung up.") from error
        if answer["status"] != "started":
            raise _denied(answer)
        self.id, self.name = answer["id"], answer["session"]

    def _refused(self, error: InvalidStatus) -> MaitredError:
        try:
            return error_of(json.loads(error.response.body or b""), queue=self._queue)
        except (ValueError, AttributeError, LookupError):
            return ServerUnreachable(f"What answers is no Maitred server: {error}.")


def _denied(answer: Mapping[str, Any]) -> MaitredError:
    code, text = answer["code"], answer["reason"]
    if "errors" in answer:
        return InvalidJob([Fault(each["path"], each["message"]) for each in answer["errors"]])
    if code == StoreError.code or code in {kind.code for kind in StoreError.__subclasses__()}:
        return error_of({"type": code, "detail": text})
    return SessionDenied(code, text)
