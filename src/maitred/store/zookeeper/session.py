"""A session with ZooKeeper, as asyncio sees it: the only module that calls kazoo.

Calls are handed to kazoo's own threads and awaited here; opening and closing, which block, run in a thread. A
read that meets a lost connection is tried again while the patience lasts. Of a write it is then not known
whether it took place: `OutcomeUnknown`, and whoever wrote must read before trying again. A session that ends
takes its ephemeral nodes with it: `lost` is set, listeners are told, and a new session begins.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from operator import methodcaller
from typing import Any, Literal, NamedTuple

from kazoo import exceptions as kazoo_errors
from kazoo.client import KazooClient, KazooState
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import ZnodeStat
from kazoo.retry import KazooRetry

from maitred.errors import SessionLost, StoreError, StoreUnavailable, TooLarge

PACKET_LIMIT = 1_000_000
_log = logging.getLogger(__name__)

Ask = Callable[[Any], Any]
Watch = Callable[[], None]
Why = Literal["missing", "exists", "version", "not-empty", "ephemeral-parent"]
_WHY: dict[type[Exception], Why] = {
    kazoo_errors.NoNodeError: "missing",
    kazoo_errors.NodeExistsError: "exists",
    kazoo_errors.BadVersionError: "version",
    kazoo_errors.NotEmptyError: "not-empty",
    kazoo_errors.NoChildrenForEphemeralsError: "ephemeral-parent",
}
_AWAY = (
    kazoo_errors.ConnectionLoss,
    kazoo_errors.ConnectionClosedError,
    kazoo_errors.OperationTimeoutError,
    kazoo_errors.SessionMovedError,
    KazooTimeoutError,
)


class Refused(Exception):
    """The tree is not as the request took it to be; nothing was changed. `path` is the first that differs."""

    def __init__(self, why: Why, path: str) -> None:
        self.why, self.path = why, path
        super().__init__(f"{path}: {why}")


class OutcomeUnknown(StoreUnavailable):
    """The connection was lost while writing; it is not known whether that took place."""


class Create(NamedTuple):
    """Make a node."""

    path: str
    data: bytes = b""
    ephemeral: bool = False
    sequence: bool = False


class Put(NamedTuple):
    """Set the data of a node that has this version; -1 is any."""

    path: str
    data: bytes
    version: int = -1


class Delete(NamedTuple):
    """Delete a node that has this version and no children."""

    path: str
    version: int = -1


class Check(NamedTuple):
    """Refuse everything unless the node has this version."""

    path: str
    version: int


Op = Create | Put | Delete | Check


@dataclass(frozen=True, slots=True)
class Node:
    """A node as it was read; `owner` is the session of an ephemeral one, times are in milliseconds."""

    data: bytes
    version: int
    children: int
    owner: int
    created: int
    modified: int

    @classmethod
    def of(cls, data: bytes | None, stat: ZnodeStat) -> "Node":
        """Take over what kazoo read."""
        owner = stat.ephemeralOwner or 0
        return cls(data or b"", stat.version, stat.numChildren, owner, stat.ctime, stat.mtime)


class Session:
    """One session at a time with the servers at `hosts`, for one event loop.

    `timeout` is how long the servers keep the session's locks when nothing is heard of it, in seconds; they
    may answer with another. `patience` is how long a call waits for a server that is away.
    """

    def __init__(self, hosts: str, *, timeout: float = 10.0, patience: float = 15.0) -> None:
        self.hosts, self.timeout, self.patience = hosts, timeout, patience
        self.lost = asyncio.Event()
        self._listeners: list[Callable[[], None]] = []
        self._client: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._opening = asyncio.Lock()
        self._doom: asyncio.TimerHandle | None = None
        self._closers: set[asyncio.Task[None]] = set()
        self._watches: set[Watch] = set()

    # ---------------------------------------------------------------- the session itself

    async def open(self) -> None:
        """Connect; StoreUnavailable if no server answers."""
        async with self._opening:
            if self._client is not None:
                return
            self._loop = asyncio.get_running_loop()
            client = KazooClient(
                hosts=self.hosts,
                timeout=self.timeout,
                connection_retry=KazooRetry(max_tries=-1, delay=0.02, backoff=2, max_delay=1.0),
            )
            client.add_listener(lambda state: self._tell(self._changed, client, state))
            starting = asyncio.ensure_future(asyncio.to_thread(client.start, self.patience))
            try:
                await asyncio.shield(starting)
            except KazooTimeoutError:
                raise StoreUnavailable(f"ZooKeeper at {self.hosts} does not answer") from None
            except asyncio.CancelledError:
                # Its thread goes on, and might have a session that nobody knows of.
                self._afterwards(_end_once(starting, client))
                raise
            self.lost.clear()
            self._client = client

    async def close(self) -> None:
        """End the session, and with it its ephemeral nodes."""
        client, self._client = self._client, None
        if self._doom:
            self._doom.cancel()
        if client is not None:
            await asyncio.to_thread(_end, client)
        await asyncio.gather(*self._closers)

    @property
    def id(self) -> int:
        """The number by which the servers know this session; 0 while there is none."""
        known = self._client.client_id if self._client is not None else None
        return int(known[0]) if known else 0

    def on_lost(self, listener: Callable[[], None]) -> None:
        """Call this in the event loop whenever the session ends: all its locks are gone."""
        self._listeners.append(listener)

    def _tell(self, call: Callable[..., None], *arguments: Any) -> None:
        """Call something in the event loop, from one of kazoo's threads."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is left to be told
                self._loop.call_soon_threadsafe(call, *arguments)

    def _changed(self, client: Any, state: str) -> None:
        if client is not self._client:
            return
        if self._doom:
            self._doom.cancel()
            self._doom = None
        if state == KazooState.LOST:
            self._lose()
        elif state == KazooState.SUSPENDED and self._loop is not None:
            # Whoever cannot be reached is given up after this time; we must not wait for longer to notice.
            self._doom = self._loop.call_later(self.timeout, self._lose)

    def _lose(self) -> None:
        """Give the session up: whatever comes back must not go on with locks that others may have by now."""
        client, self._client = self._client, None
        if client is None:
            return
        _log.warning("The session with ZooKeeper at %s was lost", self.hosts)
        self._afterwards(asyncio.to_thread(_end, client))
        self.lost.set()
        # The servers forget the watches of a session with it; whoever waits for one must look again.
        for watch in list(self._watches):
            self._fire(watch)
        for listener in self._listeners:
            listener()

    def _afterwards(self, work: Coroutine[Any, Any, None]) -> None:
        """Do what ends a client that is not ours any more; nobody but `close` waits for that."""
        closer = asyncio.ensure_future(work)
        self._closers.add(closer)
        closer.add_done_callback(self._closers.discard)

    # ---------------------------------------------------------------- reading

    async def get(self, path: str) -> Node | None:
        """Read a node; None if it is not there."""
        return (await self.get_all([path]))[0]

    async def get_all(self, paths: Sequence[str]) -> list[Node | None]:
        """Read several nodes, in this order but not at one moment."""
        answers = await self._read([methodcaller("get_async", path) for path in paths])
        return [Node.of(*answer) if answer is not None else None for answer in answers]

    async def stat(self, path: str) -> Node | None:
        """Read all of a node but its data."""
        return (await self.stat_all([path]))[0]

    async def stat_all(self, paths: Sequence[str]) -> list[Node | None]:
        """Read all of several nodes but their data."""
        answers = await self._read([methodcaller("exists_async", path) for path in paths])
        return [Node.of(None, answer) if answer is not None else None for answer in answers]

    async def children(self, path: str, watch: Watch | None = None) -> list[str] | None:
        """List the names under a node, in no order; None if it is not there.

        The watch is called once, in the event loop: when a name comes or goes, or the session ends.
        """
        names = await self._read_watching("get_children_async", path, watch)
        return None if names is None else [str(name) for name in names]

    async def watch(self, path: str, watch: Watch) -> bool:
        """Call this once, in the event loop: when a node is changed or deleted, or the session ends.

        Tells whether the node is there; nobody is called for one that is not.
        """
        return await self._read_watching("get_async", path, watch) is not None

    async def sync(self, path: str) -> None:
        """Wait until the server that answers us has seen every write before now."""
        await self._read([lambda client: client.sync_async(path)])

    async def _read_watching(self, ask: str, path: str, watch: Watch | None) -> Any:
        """Ask for something, and watch it if it is there."""
        if watch is None:
            [found] = await self._read([methodcaller(ask, path)])
            return found
        self._watches.add(watch)
        found = None
        try:
            [found] = await self._read(
                [methodcaller(ask, path, watch=lambda _event: self._tell(self._fire, watch))]
            )
        finally:
            if found is None:
                self._watches.discard(watch)
        return found

    def _fire(self, watch: Watch) -> None:
        self._watches.discard(watch)
        watch()

    async def _read(self, asks: Sequence[Ask]) -> list[Any]:
        """Ask several things, all of them again if the connection is lost; None is what is not there."""
        async with self._patiently(StoreUnavailable):
            while True:
                answers = await self._answers(asks)
                errors = [answer.exception for answer in answers if not answer.successful()]
                if any(isinstance(error, (*_AWAY, kazoo_errors.SessionExpiredError)) for error in errors):
                    await asyncio.sleep(0.02)
                    continue
                for error in errors:
                    if not isinstance(error, kazoo_errors.NoNodeError):
                        raise StoreError(f"ZooKeeper refused to read: {type(error).__name__}") from error
                return [answer.value if answer.successful() else None for answer in answers]
        raise AssertionError  # for the type checker: the block above answers or raises

    # ---------------------------------------------------------------- writing

    async def multi(self, ops: Sequence[Op]) -> list[Any]:
        """Do all of this at once, or nothing. Answers the path of a create and the version of a set data.

        Refused if the tree is otherwise than the request says, OutcomeUnknown if the connection was lost.
        """
        size = sum(len(op.path.encode()) + 60 + len(getattr(op, "data", b"")) for op in ops)
        if size > PACKET_LIMIT:
            raise TooLarge(size, PACKET_LIMIT)
        try:
            async with asyncio.timeout(self.patience):
                [answer] = await self._answers([lambda client: _transaction(client, ops).commit_async()])
        except TimeoutError:
            raise OutcomeUnknown(f"ZooKeeper at {self.hosts} does not answer") from None
        if answer.successful():
            return _outcome(ops, answer.value)
        if isinstance(answer.exception, kazoo_errors.SessionExpiredError):
            raise SessionLost
        if isinstance(answer.exception, _AWAY):
            raise OutcomeUnknown from answer.exception
        raise StoreError(f"ZooKeeper refused to write: {type(answer.exception).__name__}")

    @contextlib.asynccontextmanager
    async def _patiently(self, then: type[StoreUnavailable]) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self.patience):
                yield
        except TimeoutError:
            raise then(f"ZooKeeper at {self.hosts} does not answer") from None

    async def _answers(self, asks: Sequence[Ask]) -> list[Any]:
        """Ask things of kazoo and await all of its answers, whether they are results or errors."""
        if not asks:
            return []
        if self._client is None:
            await self.open()
        everything: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        arrived: list[None] = []

        def arrive(_answer: object) -> None:
            arrived.append(None)
            if len(arrived) == len(asks):
                self._tell(_settle, everything)

        answers = [ask(self._client) for ask in asks]
        for answer in answers:
            answer.rawlink(arrive)
        await everything
        return answers


async def certain(
    session: Session, ops: Sequence[Op], landed: Callable[[], Awaitable[bool]]
) -> list[Any] | None:
    """Write once, also when the connection is lost: then `landed` reads whether it had taken place.

    None if it had. Refused as from `multi`, SessionLost if it had not and the session ended meanwhile,
    OutcomeUnknown if that goes on for longer than the session is patient.
    """
    doubt = False
    patience = time.monotonic() + session.patience
    while True:
        try:
            return await session.multi(ops)
        except OutcomeUnknown:
            if time.monotonic() > patience:
                raise
            doubt = True
        except SessionLost:
            if await landed():
                return None
            raise
        except Refused:
            # The first try may have arrived late, after we had looked for it.
            if doubt and await landed():
                return None
            raise
        if await landed():
            return None


async def never() -> bool:
    """Say of a write that does no harm twice that it has not taken place."""
    return False


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _transaction(client: Any, ops: Sequence[Op]) -> Any:
    request = client.transaction()
    for op in ops:
        if isinstance(op, Create):
            request.create(op.path, op.data, ephemeral=op.ephemeral, sequence=op.sequence)
        elif isinstance(op, Put):
            request.set_data(op.path, op.data, op.version)
        elif isinstance(op, Delete):
            request.delete(op.path, op.version)
        else:
            request.check(op.path, op.version)
    return request


def _outcome(ops: Sequence[Op], results: Sequence[Any]) -> list[Any]:
    """Give the answers, or raise what the first operation that failed says; the others were rolled back."""
    for op, result in zip(ops, results, strict=True):
        if isinstance(result, kazoo_errors.SessionExpiredError):
            raise SessionLost
        if isinstance(result, Exception) and type(result) in _WHY:
            raise Refused(_WHY[type(result)], op.path)
    for op, result in zip(ops, results, strict=True):
        if isinstance(result, Exception):
            raise StoreError(f"ZooKeeper refused to write {op.path}: {type(result).__name__}")
    return [result.version if isinstance(result, ZnodeStat) else result for result in results]


async def _end_once(started: "asyncio.Future[None]", client: Any) -> None:
    """Stop a client when it has its session; without one it has stopped by itself."""
    with contextlib.suppress(KazooTimeoutError):
        await started
        await asyncio.to_thread(_end, client)


def _end(client: Any) -> None:
    """Stop a client for good; one that is cut off cannot say goodbye, and need not."""
    try:
        client.stop()
        client.close()
    except (OSError, kazoo_errors.KazooException) as error:
        _log.debug("a client did not end in order: %s", error)
