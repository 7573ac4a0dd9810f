"""A cluster: each primary has some of the 16384 slots, and a key's slot tells where it is.

All keys of a queue share a hash tag, so a queue is on one node, and each verb is one call there. The map of
slots is asked for when it is first needed, when a node says that a slot has moved, and after a node was lost,
since a replica may have taken its place.
"""

import asyncio
from binascii import crc_hqx
from collections.abc import Iterator
from functools import partial
from typing import Any

from maitred.address import Address, Site
from maitred.errors import StoreError, StoreUnavailable
from maitred.store.valkey.board import too_few, wait_for
from maitred.store.valkey.connection import Connection, ReplyError

SLOTS = 16384
# A node that says nothing must not keep us long from asking the next for the map.
PATIENCE = 1.0
# While a node is lost everybody asks for the map; once in this time is enough.
LOOK_EVERY = 0.1
# A call is sent so often, with these pauses where the cluster asks for time; then the caller has to wait.
_PAUSES = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8)


def slot(key: str) -> int:
    """Give the slot of a key: of what is between the first braces, if there is anything, else of all."""
    begin = key.find("{")
    end = key.find("}", begin + 1) if begin >= 0 else -1
    tag = key[begin + 1 : end] if end > begin + 1 else key
    return crc_hqx(tag.encode(), 0) % SLOTS


class _Node(Connection):
    """The connection to one node."""

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        self.address = address


class Cluster:
    """The connections to the primaries of a cluster, one to each, and who has which slot."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._nodes: dict[tuple[str, int], _Node] = {}
        self._slots: list[_Node | None] = [None] * SLOTS
        self._known = False
        self._doubtful = False
        self._look_after = 0.0
        self._turn = 0
        self._looking: asyncio.Task[None] | None = None

    # ---------------------------------------------------------------- calls

    async def call(self, key: str, *args: Any) -> Any:
        """Send a command to where its key is, wherever that has moved."""
        (answer,) = await self._follow(key, args)
        return answer

    async def kept(self, key: str, *args: Any) -> Any:
        """Send a command and wait for the replicas of the node that has its key."""
        answer, replicas = await self._follow(key, args, wait_for(self._site.replicas))
        if replicas < self._site.replicas:
            self._doubtful = True
            raise too_few(self._site.replicas, replicas)
        return answer

    async def everywhere(self, *args: Any) -> list[Any]:
        """Send a command to every primary."""
        await self._look()
        try:
            return await asyncio.gather(*(node.call(*args) for node in self._primaries()))
        except StoreUnavailable:
            self._doubtful = True
            raise

    async def ping(self) -> None:
        """See that every primary answers and finds the cluster in order."""
        for said in await self.everywhere("CLUSTER", "INFO"):
            if b"cluster_state:ok" not in said:
                raise StoreUnavailable("the store is not ready: the cluster is down")

    def parked(self, key: str) -> Connection:
        """Give a connection that may block at the node that has a key, and that finds it anew."""
        return Connection(partial(self._address, key), patience=None)

    async def _address(self, key: str) -> Address:
        self._doubtful = True
        return (await self._at(key)).address

    async def _follow(self, key: str, *commands: tuple[Any, ...]) -> list[Any]:
        """Send commands to the node that has a key, and again where it moved or is on its way to.

        A script touches more keys than it declares, and those of a slot that moves key by key are in two
        places: it waits until the slot has arrived.
        """
        scripted = commands[0][0] == "FCALL"
        asked: _Node | None = None
        for pause in _PAUSES:
            node = asked or await self._at(key)
            try:
                if asked:
                    return (await asked.call_together(("ASKING",), *commands))[1:]
                if len(commands) > 1:
                    return await node.call_together(*commands)
                return [await node.call(*commands[0])]
            except StoreUnavailable:
                self._doubtful = True
                raise
            except ReplyError as error:
                said = str(error)
                asked = self._named(error, node) if said.startswith("ASK ") and not scripted else None
                if asked or await self.moved(error, node):
                    continue
                if not said.startswith(("ASK ", "TRYAGAIN", "CLUSTERDOWN")):
                    raise
                self._doubtful = True
                await asyncio.sleep(pause)
        raise StoreUnavailable("the store is not ready: the cluster does not settle who has the queue")

    async def moved(self, error: ReplyError, node: "_Node | None" = None) -> bool:
        """Look at the map anew if a refusal says that a slot has moved, where its new node tells it."""
        if not str(error).startswith("MOVED "):
            return False
        await self._look(self._named(error, node))
        return True

    # ---------------------------------------------------------------- the map

    async def _at(self, key: str) -> _Node:
        """Give the node that has a key, as far as is known."""
        if self._doubtful or not self._known:
            await self._clear_doubt()
        node = self._slots[slot(key)]
        if node is None:
            self._doubtful = True
            raise StoreUnavailable(f"the store is not ready: no node of the cluster has slot {slot(key)}")
        return node

    async def _clear_doubt(self) -> None:
        """Look at the map anew, unless that was done just now; who comes meanwhile stays behind in order."""
        now = asyncio.get_running_loop().time()
        if self._looking is None:
            if self._known and now < self._look_after:
                return
            self._look_after = now + LOOK_EVERY
        await self._look()
        self._doubtful = False

    async def _look(self, first: _Node | None = None) -> None:
        """Read the map once for all who ask at the same time, from `first` if that answers."""
        if self._looking is None:
            self._looking = asyncio.ensure_future(self._read(first))
            self._looking.add_done_callback(self._looked)
        await asyncio.shield(self._looking)

    def _looked(self, looking: "asyncio.Task[None]") -> None:
        if looking is self._looking:
            self._looking = None
        if not looking.cancelled():
            looking.exception()

    async def _read(self, first: _Node | None) -> None:
        reasons = []
        for node in self._candidates(first):
            try:
                async with asyncio.timeout(PATIENCE):
                    answer = await node.call("CLUSTER", "SLOTS")
            except StoreUnavailable as error:
                reasons.append(str(error))
            except TimeoutError:
                reasons.append("no answer in time")
            except ReplyError as error:
                raise StoreError(
                    f"a server does not say who has which slot of the cluster: {error}"
                ) from None
            else:
                if answer:
                    self._draw(answer, node)
                    return
                reasons.append("a node has no slots and knows of nobody who has")
        raise StoreUnavailable(
            f"the store does not answer: no node of the cluster does ({'; '.join(reasons)})"
        )

    def _candidates(self, first: _Node | None) -> Iterator[_Node]:
        """Give whom to ask for the map, beginning with another one each time."""
        if first is not None:
            yield first
        known = list(self._nodes.values())
        self._turn = (self._turn + 1) % max(1, len(known))
        yield from known[self._turn :] + known[: self._turn]
        for member in self._site.members:
            if (member.host, member.port) not in self._nodes:
                yield self._node(member.host, member.port)

    def _draw(self, answer: list[Any], told_by: _Node) -> None:
        """Draw the map anew, and hang up on nodes that are no longer on it."""
        slots: list[_Node | None] = [None] * SLOTS
        for begin, end, primary, *_ in answer:
            node = self._node(_host(primary) or told_by.address.host, primary[1])
            slots[begin : end + 1] = [node] * (end + 1 - begin)
        self._slots, self._known = slots, True
        in_use = set(slots)
        for at, node in list(self._nodes.items()):
            if node not in in_use and not node.busy:
                node.close()
                del self._nodes[at]

    def _primaries(self) -> list[_Node]:
        return [node for node in dict.fromkeys(self._slots) if node is not None]

    def _named(self, error: ReplyError, node: _Node | None) -> _Node | None:
        """Give the node that a MOVED or an ASK names; without a host it is that of the node that says so."""
        host, _, port = str(error).split()[2].rpartition(":")
        if not host and node is not None:
            host = node.address.host
        return self._node(host, int(port)) if host else None

    def _node(self, host: str, port: int) -> _Node:
        if (host, port) not in self._nodes:
            self._nodes[host, port] = _Node(self._site.server.moved(host, port))
        return self._nodes[host, port]

    def close(self) -> None:
        """Hang up."""
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None
        for node in self._nodes.values():
            node.close()


def _host(node: list[Any]) -> str:
    """Read where a node wants to be called: by a name, or by its number if it has no name."""
    host, _, _, *more = node
    if host == b"?" and more:
        told = dict(zip(more[0][::2], more[0][1::2], strict=True))
        host = told.get(b"ip", b"")
    return host.decode() if host else ""
