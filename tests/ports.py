"""Ports of loopback for servers that must be told theirs before they start, or start again on the same one.

They lie below those that the kernel lends to whoever connects. One of these can be lent again between the
choice and the server's start, while the server is down, or, as with what a ZooKeeper server listens on only
once it leads, at any time; then it never comes up.
"""

import os
import random
import socket
from pathlib import Path

HOST = "127.0.0.1"
_LOWEST = 10_000
_LENT = Path("/proc/sys/net/ipv4/ip_local_port_range")
# Every process of a run has ports that the others leave alone.
_PROCESSES = 16
_MINE = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % _PROCESSES
_given: set[int] = set()


def free_ports(count: int) -> list[int]:
    """Give ports that nobody has, and that nobody else in this run is given."""
    first_lent = int(_LENT.read_text().split()[0])
    candidates = [port for port in range(_LOWEST, first_lent) if port % _PROCESSES == _MINE]
    # Seeded by the system: tests may have set the module's own seed.
    random.SystemRandom().shuffle(candidates)
    ports: list[int] = []
    for port in candidates:
        if len(ports) == count:
            break
        if port not in _given and _is_free(port):
            ports.append(port)
    assert len(ports) == count, f"fewer than {count} ports of loopback are free"
    _given.update(ports)
    return ports


def _is_free(port: int) -> bool:
    with socket.socket() as trial:
        try:
            trial.bind((HOST, port))
        except OSError:
            return False
        return True
