"""Servers that belong together: a primary with a replica and sentinels, and the nodes of a cluster.

Each is a process on a free port of loopback, in a directory of its own, and ends with the tests.
"""

import contextlib
import os
import shutil
import signal
from pathlib import Path
from typing import Any, Self

import redis

from maitred.store.valkey import keys
from maitred.store.valkey.cluster import SLOTS, slot
from maitred.store.valkey.tether import Tethered
from tests.ports import HOST, free_ports
from tests.waiting import eventually

NAME = "maitred-tests"
NEVER = 600_000


class Node:
    """One server process, which can be killed and started again on what it had written."""

    def __init__(self, binary: Path, home: Path, port: int, *words: str) -> None:
        self.port, self.home = port, home
        self.binary, self.words = binary, words
        self.client = redis.Redis(host=HOST, port=port, decode_responses=True)
        self._process: Tethered | None = None
        home.mkdir()

    def launch(self, **more: str) -> None:
        """Start it."""
        options = {
            "port": str(self.port),
            "bind": HOST,
            "save": "",
            "logfile": "server.log",
            "hz": "250",
            "repl-diskless-sync-delay": "0",
            **{name.replace("_", "-"): value for name, value in more.items()},
        }
        words = [word for name, value in options.items() for word in (f"--{name}", *value.split(" "))]
        self._process = Tethered(
            [self.binary, *self.words, *words],
            cwd=self.home,
            output=1,
            environment={**os.environ, "LC_ALL": "C"},
        )

    async def answers(self) -> Self:
        """Wait until it does."""

        async def look() -> bool:
            assert self._process, "it was not started"
            assert self._process.running, (self.home / "server.log").read_text()
            with contextlib.suppress(redis.ConnectionError):
                return bool(self.client.ping())
            return False

        await eventually(look)
        return self

    def says(self, *words: Any) -> Any:
        """Send a command to it."""
        return self.client.execute_command(*words)  # type: ignore[no-untyped-call]

    def kill(self) -> None:
        """End it without a word."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process.pid, signal.SIGKILL)
            self._process.stop(10)
            self._process = None

    def clear(self) -> None:
        """Leave nothing of it."""
        self.kill()
        self.client.close()
        shutil.rmtree(self.home)


class Watched:
    """A primary with a replica, and three sentinels that watch over them."""

    def __init__(self, binary: Path, home: Path) -> None:
        home.mkdir()
        ports = free_ports(5)
        self.pair = [Node(binary, home / f"server-{port}", port) for port in ports[:2]]
        self.sentinels = [
            Node(binary, home / f"sentinel-{port}", port, "sentinel.conf", "--sentinel") for port in ports[2:]
        ]
        addresses = ",".join(f"{HOST}:{sentinel.port}" for sentinel in self.sentinels)
        self.url = f"valkey+sentinel://{addresses}/{NAME}"

    async def start(self) -> None:
        """Start all, with what the sentinels would else have to find out about each other."""
        first, second = self.pair
        first.launch(appendonly="yes")
        second.launch(appendonly="yes", replicaof=f"{HOST} {first.port}")
        for sentinel in self.sentinels:
            (sentinel.home / "sentinel.conf").write_text(self._watch(sentinel))
            sentinel.launch()
        for node in (*self.pair, *self.sentinels):
            await node.answers()
        await eventually(self._in_step)

    def _watch(self, sentinel: Node) -> str:
        others = [other for other in self.sentinels if other is not sentinel]
        return "\n".join(
            [
                f"sentinel myid {sentinel.port:040x}",
                f"sentinel monitor {NAME} {HOST} {self.pair[0].port} 2",
                f"sentinel down-after-milliseconds {NAME} {NEVER}",
                f"sentinel failover-timeout {NAME} 3000",
                f"sentinel known-replica {NAME} {HOST} {self.pair[1].port}",
                *(
                    f"sentinel known-sentinel {NAME} {HOST} {other.port} {other.port:040x}"
                    for other in others
                ),
                "",
            ]
        )

    async def _in_step(self) -> bool:
        """Tell whether the replica has all, and every sentinel knows of it."""
        told = [sentinel.says("SENTINEL", "REPLICAS", NAME) for sentinel in self.sentinels]
        return all(facts and "slave" in str(facts[0]) for facts in told) and bool(
            self.pair[0].says("ROLE")[2] and self.pair[1].says("ROLE")[3] == "connected"
        )

    async def fails_over(self, old: Node) -> Node:
        """Let the sentinels notice at once that a primary is gone, and all name another; give that.

        Otherwise they are patient: on a busy host they would take one for dead that is only slow.
        """
        self._be_patient(100)

        async def look() -> bool:
            said = [sentinel.says("SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME) for sentinel in self.sentinels]
            return all(int(port) != old.port for _, port in said)

        await eventually(look)
        self._be_patient(NEVER)
        return next(node for node in self.pair if node is not old)

    def _be_patient(self, milliseconds: int) -> None:
        for sentinel in self.sentinels:
            sentinel.says("SENTINEL", "SET", NAME, "down-after-milliseconds", milliseconds)

    def clear(self) -> None:
        """Leave nothing of them."""
        for node in (*self.sentinels, *self.pair):
            node.clear()


class Nodes:
    """Three nodes of a cluster, each with a third of the slots, and perhaps a spare one with none."""

    def __init__(self, binary: Path, home: Path, *, spare: bool = False) -> None:
        home.mkdir()
        self.count = 3
        self.buses = free_ports(self.count + spare)
        self.nodes = [Node(binary, home / f"node-{port}", port) for port in free_ports(self.count + spare)]
        self.url = "valkey+cluster://" + ",".join(f"{HOST}:{node.port}" for node in self.nodes[:2])

    def launch(self, node: Node) -> None:
        """Start a node, or start it again; with a spare one they are to be killed, and keep all."""
        bus = self.buses[self.nodes.index(node)]
        node.launch(
            cluster_enabled="yes",
            cluster_port=str(bus),
            cluster_node_timeout=str(NEVER),
            cluster_require_full_coverage="no",
            appendonly="yes",
            appendfsync="everysec" if len(self.nodes) == self.count else "always",
        )

    async def start(self) -> None:
        """Start them, and wait until each knows who has what."""
        for node in self.nodes:
            self.launch(node)
        for node in self.nodes:
            await node.answers()
        edges = [round(SLOTS * part / self.count) for part in range(self.count + 1)]
        for number, node in enumerate(self.nodes, 1):
            node.says("CLUSTER", "SET-CONFIG-EPOCH", number)
            if number <= self.count:
                node.says("CLUSTER", "ADDSLOTSRANGE", edges[number - 1], edges[number] - 1)
            for other, bus in list(zip(self.nodes, self.buses, strict=True))[: number - 1]:
                node.says("CLUSTER", "MEET", HOST, other.port, bus)
        await eventually(self.is_whole)

    async def is_whole(self) -> bool:
        """Tell whether all nodes find that all slots are served."""
        known = f"cluster_known_nodes:{len(self.nodes)}"
        wanted = {"cluster_state:ok", f"cluster_slots_ok:{SLOTS}", known}
        return all(wanted <= set(node.says("CLUSTER", "INFO").split()) for node in self.nodes)

    def of(self, key: str) -> Node:
        """Give the node that has a key."""
        where = slot(key)
        [port] = [
            primary[1]
            for begin, end, primary, *_ in self.nodes[0].says("CLUSTER", "SLOTS")
            if begin <= where <= end
        ]
        return next(node for node in self.nodes if node.port == port)

    def queue_on(self, node: Node, name: str) -> str:
        """Give a name of a queue, beginning with this one, that is on a node."""
        names = (f"{name}-{n}" for n in range(1000))
        return next(name for name in names if self.of(keys.floor(name)) is node)

    def clear(self) -> None:
        """Leave nothing of them."""
        for node in self.nodes:
            node.clear()
