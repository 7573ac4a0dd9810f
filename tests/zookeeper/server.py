"""Real ZooKeeper servers for the tests, from Debian's jars and without a service manager.

Each has a data directory and loopback ports of its own, and ends with this process, however that ends. Ready
is one that says so when asked.
"""

import logging
import os
import shutil
import signal
import socket
import time
from pathlib import Path

from maitred.store.valkey.tether import Tethered
from tests.ports import free_ports

_log = logging.getLogger(__name__)
JAR = Path("/usr/share/java/zookeeper.jar")
PATIENCE = 30.0
TICK = 250
_JVM = ("-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Xshare:auto")
_LOG = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"


class ZooKeeper:
    """One server, alone or of an ensemble."""

    def __init__(self, home: Path, port: int, peers: dict[int, tuple[int, int]] | None = None, me: int = 0):
        self.home, self.port = home, port
        home.mkdir(parents=True)
        # What a test writes need not survive the machine.
        lines = [
            f"tickTime={TICK}",
            f"dataDir={home}",
            f"clientPort={port}",
            "clientPortAddress=127.0.0.1",
            "admin.enableServer=false",
            "4lw.commands.whitelist=srvr,mntr",
            "forceSync=no",
            "maxClientCnxns=0",
            "minSessionTimeout=500",
            "maxSessionTimeout=60000",
        ]
        if peers:
            (home / "myid").write_text(str(me))
            lines += ["initLimit=40", "syncLimit=20"]
            lines += [f"server.{n}=127.0.0.1:{a}:{b}" for n, (a, b) in peers.items()]
        (home / "zoo.cfg").write_text("\n".join(lines) + "\n")
        self._process: Tethered | None = None

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        java = shutil.which("java")
        assert java, "java is missing: `make test` installs it, or `apt-get install default-jre-headless`"
        assert JAR.exists(), "zookeeper is missing: `make test` installs it, or `apt-get install zookeeper`"
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        words = [
            java,
            *_JVM,
            _LOG,
            "-Dzookeeper.forceSync=no",
            "-cp",
            f"{JAR}:{JAR.parent}/slf4j-simple.jar",
            main,
        ]
        with (self.home / "server.log").open("ab") as log:
            self._process = Tethered(
                [*words, "zoo.cfg"], cwd=self.home, output=log.fileno(), environment=dict(os.environ)
            )

    def await_ready(self) -> str:
        """Wait until it serves, and give its mode: standalone, leader or follower."""
        patience = time.monotonic() + PATIENCE
        while self._process and self._process.running and time.monotonic() < patience:
            if mode := self.mode():
                return mode
            time.sleep(0.02)
        raise AssertionError(f"no ZooKeeper came up: {(self.home / 'server.log').read_text()[-2000:]}")

    def mode(self) -> str | None:
        for line in self.ask("srvr").splitlines():
            if line.startswith("Mode: "):
                return line.removeprefix("Mode: ")
        return None

    def ask(self, word: str) -> str:
        """Ask one of the four-letter questions; nothing if nobody answers."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as line:
                line.sendall(word.encode())
                line.shutdown(socket.SHUT_WR)
                parts = []
                while part := line.recv(4096):
                    parts.append(part)
                return b"".join(parts).decode()
        except OSError:
            return ""

    def signal(self, number: signal.Signals) -> None:
        assert self._process
        os.kill(self._process.pid, number)

    def kill(self) -> None:
        """End it as a crash would."""
        if self._process:
            self.signal(signal.SIGKILL)
            self._process.stop(PATIENCE)
            self._process = None

    def stop(self) -> None:
        """End it and take its files away."""
        if self._process:
            self._process.stop(PATIENCE)
            self._process = None
        shutil.rmtree(self.home, ignore_errors=True)


class Ensemble:
    """Three servers that elect a leader."""

    def __init__(self, home: Path) -> None:
        ports = free_ports(9)
        peers = {n: (ports[3 * n - 2], ports[3 * n - 1]) for n in (1, 2, 3)}
        self.servers = [ZooKeeper(home / f"{n}", ports[3 * n - 3], peers, n) for n in (1, 2, 3)]

    @property
    def hosts(self) -> str:
        return ",".join(server.host for server in self.servers)

    def start(self) -> None:
        for server in self.servers:
            server.start()
        for server in self.servers:
            server.await_ready()

    def leader(self) -> ZooKeeper:
        return next(server for server in self.servers if server.mode() == "leader")

    def stop(self) -> None:
        """End them; what they said is shown with the test, if that fails."""
        for server in self.servers:
            _log.warning("%s said: %s", server.host, (server.home / "server.log").read_text()[-4000:])
            server.stop()
