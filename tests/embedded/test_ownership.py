"""One owner at a time; and a server never outlives its own."""

import contextlib
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import redis

from maitred.errors import DataDirectoryInUse, EmbeddedError
from maitred.store.valkey import directory
from maitred.store.valkey.embedded import Embedded, note
from tests.embedded.conftest import Owner, Watched, debian_server, talking_to

Own = Callable[..., Owner]
Watch = Callable[[int], Watched]

OWN = """
import sys
from pathlib import Path
from maitred.store.valkey.embedded import Embedded
embedded = Embedded(Path(sys.argv[1]), binary=Path(sys.argv[2]))
embedded.start()
print(embedded.pid, flush=True)
sys.stdin.read()
embedded.stop()
"""

OWN_FROM_A_THREAD_THAT_HAS_ENDED = """
import sys, threading
from pathlib import Path
from maitred.store.valkey.embedded import Embedded
embedded = Embedded(Path(sys.argv[1]), binary=Path(sys.argv[2]))
starter = threading.Thread(target=embedded.start)
starter.start()
starter.join()
print(embedded.pid, flush=True)
sys.stdin.read()
import redis
assert redis.from_url(embedded.url).ping(), "the server went with the thread"
print("still there")
embedded.stop()
"""

OWN_AND_JUST_LEAVE = OWN.replace("embedded.stop()\n", "")

TETHER_BY_A_PIPE = """
import os, sys
from pathlib import Path
from maitred.store.valkey.tether import Tethered
child = Tethered(["/bin/sleep", "1000"], cwd=Path("/"), output=2, environment={}, by_pipe=True)
print(child.pid, flush=True)
sys.stdin.read()
child.stop(60)
"""

MUTE_SERVER = """#!/bin/sh
[ "$1" = --version ] && echo "Redis server v=7.0.15 sha=0:0 malloc=jemalloc-5 bits=64 build=1" && exit
exec sleep 1000
"""


def test_a_second_start_is_refused_and_names_the_owner(tmp_path: Path, binary: Path, own: Own) -> None:
    owner = own(OWN, tmp_path, binary)
    with pytest.raises(DataDirectoryInUse) as refused:
        Embedded(tmp_path, binary=binary).start()
    assert refused.value.pid == owner.process.pid
    assert str(refused.value) == (
        f"The data directory {tmp_path} is in use by process {owner.process.pid}; "
        "stop that one or choose another directory."
    )
    found = note(tmp_path)
    assert found is not None, "the refused one touches nothing of the owner's"
    assert Path(found["socket"]).is_socket()


def test_a_second_start_in_the_same_process_is_refused_too(tmp_path: Path) -> None:
    with Embedded(tmp_path) as first:
        with pytest.raises(DataDirectoryInUse) as refused:
            Embedded(tmp_path).start()
        assert refused.value.pid == os.getpid()
        assert first.running


def test_start_and_stop_may_be_said_twice(tmp_path: Path) -> None:
    embedded = Embedded(tmp_path)
    embedded.stop()
    embedded.start()
    pid = embedded.pid
    embedded.start()
    assert embedded.pid == pid
    embedded.stop()
    embedded.stop()
    assert not embedded.running
    embedded.start()
    embedded.stop()


def test_a_stop_leaves_no_socket_and_no_note(tmp_path: Path) -> None:
    with Embedded(tmp_path) as embedded:
        home = embedded.socket.parent
    assert not home.exists()
    assert not (tmp_path / "embedded.json").exists()


def test_a_killed_owner_takes_its_server_along(tmp_path: Path, binary: Path, own: Own, watch: Watch) -> None:
    owner = own(OWN, tmp_path, binary)
    server = watch(int(owner.says))
    owner.kill()
    assert server.has_ended(within=20)


def test_an_owner_that_leaves_without_a_stop_takes_its_server_along(
    tmp_path: Path, binary: Path, own: Own, watch: Watch
) -> None:
    owner = own(OWN_AND_JUST_LEAVE, tmp_path, binary)
    server = watch(int(owner.says))
    owner.finish()
    assert server.has_ended(within=20)


def test_a_server_does_not_follow_the_thread_that_asked_for_it(
    tmp_path: Path, binary: Path, own: Own, watch: Watch
) -> None:
    owner = own(OWN_FROM_A_THREAD_THAT_HAS_ENDED, tmp_path, binary)
    server = watch(int(owner.says))
    assert owner.finish() == "still there"
    assert server.has_ended()


def test_a_server_of_a_thread_that_has_ended_still_ends_with_the_process(
    tmp_path: Path, binary: Path, own: Own, watch: Watch
) -> None:
    owner = own(OWN_FROM_A_THREAD_THAT_HAS_ENDED, tmp_path, binary)
    server = watch(int(owner.says))
    owner.kill()
    assert server.has_ended(within=20)


@pytest.mark.parametrize("end", ["kill", "finish"])
def test_where_the_kernel_does_not_tell_a_pipe_does(own: Own, watch: Watch, end: str) -> None:
    owner = own(TETHER_BY_A_PIPE)
    child = watch(int(owner.says))
    getattr(owner, end)()
    assert child.has_ended(within=20)


@pytest.mark.parametrize("killed", ["the owner", "the server", "both"])
def test_data_is_there_again_after_a_kill(
    tmp_path: Path, binary: Path, own: Own, watch: Watch, killed: str
) -> None:
    owner = own(OWN, tmp_path, binary)
    server = watch(int(owner.says))
    found = note(tmp_path)
    assert found is not None
    stale = Path(found["socket"])
    with contextlib.closing(_client(stale)) as client:
        for number in range(1000):
            client.set(f"job:{number}", number)
    if killed != "the owner":
        server.kill()
    if killed == "the server":
        assert server.has_ended(within=20)
        owner.finish()
    else:
        owner.kill()
    with Embedded(tmp_path, binary=binary) as embedded, talking_to(embedded) as client:
        assert client.dbsize() == 1000
        assert client.get("job:999") == "999"
        assert not stale.parent.exists(), "the socket of the one before is cleared away"


def test_a_crashed_server_can_be_started_again_by_its_owner(tmp_path: Path, watch: Watch) -> None:
    embedded = Embedded(tmp_path)
    embedded.start()
    with talking_to(embedded) as client:
        client.set("who", "ada")
    server = watch(embedded.pid)
    server.kill()
    assert server.has_ended(within=20)
    while embedded.running:
        time.sleep(0.001)
    socket = embedded.socket
    with embedded, talking_to(embedded) as client:
        assert client.get("who") == "ada"
        assert embedded.socket == socket, "others know it by this one"


def test_a_start_that_its_owner_does_not_want_any_more_ends_soon(tmp_path: Path) -> None:
    mute = tmp_path / "mute-server"
    mute.write_text(MUTE_SERVER)
    mute.chmod(0o755)
    embedded = Embedded(tmp_path / "data", binary=mute)
    threading.Timer(0.2, embedded.hurry).start()
    with pytest.raises(EmbeddedError, match="was given up"):
        embedded.start()


def test_a_new_owner_waits_for_the_old_server_and_then_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old_server = directory.DataDirectory(tmp_path).take_server_lock()
    monkeypatch.setattr(directory, "OLD_SERVER_PATIENCE", 0.1)
    with pytest.raises(DataDirectoryInUse, match="whose owner is gone"):
        Embedded(tmp_path).start()
    monkeypatch.setattr(directory, "OLD_SERVER_PATIENCE", 60.0)
    gone = threading.Timer(0.1, os.close, [old_server])
    gone.start()
    with Embedded(tmp_path) as embedded:
        assert embedded.running
    gone.join()


def test_a_forked_child_neither_holds_the_directory_nor_stops_the_server(tmp_path: Path) -> None:
    embedded = Embedded(tmp_path)
    embedded.start()
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            embedded.stop()
            os.write(tell, b"stopped" if not embedded.running else b"running")
            os.close(tell)
            signal.pause()
        os._exit(0)
    try:
        assert os.read(told, 10) == b"stopped"
        with talking_to(embedded) as client:
            assert client.ping()
        embedded.stop()
        with Embedded(tmp_path):
            pass
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(told)
        os.close(tell)


def test_a_data_directory_that_is_a_file_is_refused_in_one_sentence(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(EmbeddedError) as refused:
        Embedded(file).start()
    assert str(refused.value) == f"The data directory {file} is a file and not a directory."
    with pytest.raises(EmbeddedError, match=r"cannot be used: Not a directory\.$"):
        Embedded(file / "below").start()
    assert note(file) is None


START_AS_NOBODY = """
import os, sys
from pathlib import Path
from maitred.errors import EmbeddedError
from maitred.store.valkey.embedded import Embedded
if os.geteuid() == 0:
    os.setuid(65534)
try:
    Embedded(Path(sys.argv[1]), binary=Path(sys.argv[2])).start()
except EmbeddedError as refused:
    print(refused, flush=True)
"""


def test_a_data_directory_that_may_not_be_written_is_refused_in_one_sentence(own: Own) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o555)
        says = own(START_AS_NOBODY, folder, debian_server()).says
        assert says == f"The data directory {folder} cannot be used: Permission denied."


def _client(socket: Path) -> redis.Redis:
    return redis.Redis(unix_socket_path=str(socket))
