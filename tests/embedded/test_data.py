"""The data directory: any path, kept data, whichever server comes next."""

from pathlib import Path

import pytest

from maitred.errors import EmbeddedError
from maitred.store.valkey.directory import LOG_LIMIT
from maitred.store.valkey.embedded import SOCKET_PATH_LIMIT, Embedded, note
from tests.embedded.conftest import debian_server, talking_to, wheel_server

ODD_NAMES = [
    "plain",
    "two words",
    "a 'quoted' \"name\" \\ $HOME #1",
    "Ünï 日本",
    "new\nline",
    "-leading",
    "x" * 200,
]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_data_directory_may_have_any_name(tmp_path: Path, binary: Path, name: str) -> None:
    data = tmp_path / name / ("deep " * 20)
    with Embedded(data, binary=binary) as embedded, talking_to(embedded) as client:
        client.set("who", "ada")
        assert len(str(embedded.socket).encode()) <= SOCKET_PATH_LIMIT
    assert (data / "appendonlydir").is_dir()
    with Embedded(data, binary=binary) as embedded, talking_to(embedded) as client:
        assert client.get("who") == "ada"


def test_a_relative_path_stays_the_same_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    embedded = Embedded(Path("data"))
    monkeypatch.chdir("/")
    with embedded:
        assert (tmp_path / "data" / "appendonlydir").is_dir()


def test_data_passes_between_servers_of_any_age(tmp_path: Path) -> None:
    for turn, binary in enumerate([wheel_server(), debian_server(), wheel_server(), debian_server()]):
        with Embedded(tmp_path, binary=binary) as embedded, talking_to(embedded) as client:
            assert client.incr("turns") == turn + 1
            client.xadd("events", {"turn": turn})
            client.zadd("places", {str(turn): turn})
            client.bgrewriteaof()
            assert client.xlen("events") == client.zcard("places") == turn + 1


def test_the_server_is_private_and_keeps_everything(tmp_path: Path, binary: Path) -> None:
    with Embedded(tmp_path, durability="always", binary=binary) as embedded, talking_to(embedded) as client:
        assert embedded.socket.parent.stat().st_mode & 0o777 == 0o700
        assert embedded.socket.stat().st_mode & 0o777 == 0o700
        settings = client.config_get("*")
        assert settings["port"] == "0"
        assert settings["appendonly"] == "yes"
        assert settings["appendfsync"] == "always"
        assert settings["maxmemory-policy"] == "noeviction"
        assert settings["save"] == ""


def test_the_allocator_is_named(tmp_path: Path, binary: Path) -> None:
    with Embedded(tmp_path, binary=binary) as embedded:
        assert "malloc" in embedded.allocator or embedded.allocator == "libc"


def test_the_locale_of_its_owner_does_not_reach_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "xx_YY.UTF-8")
    with Embedded(tmp_path, binary=wheel_server()):
        assert "LOCALE" not in (tmp_path / "server.log").read_text("utf-8"), "Valkey complains of a bad one"


def test_the_note_says_where_it_is_while_it_runs(tmp_path: Path) -> None:
    assert note(tmp_path) is None
    assert note(tmp_path / "nowhere") is None
    with Embedded(tmp_path) as embedded:
        found = note(tmp_path)
        assert found is not None
        assert found["socket"] == str(embedded.socket)
        assert found["server_pid"] == embedded.pid
    assert note(tmp_path) is None


def test_a_log_that_has_grown_is_put_aside(tmp_path: Path) -> None:
    (tmp_path / "server.log").write_bytes(b"x" * (LOG_LIMIT + 1))
    with Embedded(tmp_path):
        assert (tmp_path / "server.log").stat().st_size < LOG_LIMIT
    assert (tmp_path / "server.log.1").stat().st_size == LOG_LIMIT + 1


def test_a_torn_end_of_the_file_is_cut_off_and_the_rest_is_there(tmp_path: Path, binary: Path) -> None:
    with Embedded(tmp_path, binary=binary) as embedded, talking_to(embedded) as client:
        client.set("whole", "yes")
    (newest,) = (tmp_path / "appendonlydir").glob("*.incr.aof")
    with newest.open("ab") as file:
        file.write(b"*3\r\n$3\r\nSET\r\n$4\r\nto")
    with Embedded(tmp_path, binary=binary) as embedded, talking_to(embedded) as client:
        assert client.get("whole") == "yes"


def test_a_broken_file_is_told_with_the_servers_own_words(tmp_path: Path, binary: Path) -> None:
    with Embedded(tmp_path, binary=binary) as embedded, talking_to(embedded) as client:
        client.set("whole", "yes")
    (newest,) = (tmp_path / "appendonlydir").glob("*.incr.aof")
    newest.write_bytes(b"nonsense\r\n" + newest.read_bytes())
    with pytest.raises(EmbeddedError, match=r"ended at once; .*server\.log ends with: .*"):
        Embedded(tmp_path, binary=binary).start()
    assert note(tmp_path) is None
