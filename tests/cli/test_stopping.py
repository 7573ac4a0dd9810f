"""A house that cannot open yet stops when it is asked to."""

import signal
import socket
import subprocess
import time
from collections.abc import Iterator

import pytest

from tests.cli.house import House

# Without the signal a start gives up by itself after five seconds or more.
AT_ONCE = 4.5
SENTENCE = "maitred: stopped before it was ready.\n"
MUTE_SERVER = """#!/bin/sh
[ "$1" = --version ] && echo "Redis server v=7.0.15 sha=0:0 malloc=jemalloc-5 bits=64 build=1" && exit
exec sleep 1000
"""


@pytest.fixture
def mute() -> Iterator[socket.socket]:
    """A store that can be reached and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(30)
        yield listening


def stops_at_once(process: subprocess.Popen[str], number: int) -> None:
    process.send_signal(number)
    asked = time.monotonic()
    shown, told = process.communicate(timeout=30)
    assert (process.returncode, shown, told) == (0, "", SENTENCE)
    assert time.monotonic() - asked < AT_ONCE


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("words", [("up", "--port", "0"), ("serve", "--port", "0"), ("work",)], ids=" ".join)
def test_a_signal_is_heard_while_the_store_does_not_answer(
    house: House, mute: socket.socket, words: tuple[str, ...], number: int
) -> None:
    url = f"valkey://127.0.0.1:{mute.getsockname()[1]}"
    process = house.starts(*words, MAITRED_STORE__URL=url)
    connection, _ = mute.accept()
    with connection:
        assert connection.recv(1)
        stops_at_once(process, number)
    assert not (house.home / ".maitred" / "address").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_is_heard_while_the_embedded_store_comes_up(house: House, number: int) -> None:
    server = house.home / "mute-server"
    server.write_text(MUTE_SERVER)
    server.chmod(0o755)
    process = house.starts("up", "--port", "0", MAITRED_SERVER=str(server))
    log = house.home / ".maitred" / "server.log"
    deadline = time.monotonic() + 30
    while not log.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    stops_at_once(process, number)
    again, _ = house.comes_up("up", "--port", "0", "--slots", "0")
    house.stops(again)
