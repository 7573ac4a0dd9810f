"""The peers' own environments: a virtual environment for dramatiq and huey, an npm project for BullMQ.

They are installed from their registries on first use, in the pinned versions of `peers/`, and used again
as long as those files do not change. They lie in `benchmarks/.envs/`, which git ignores; removing it is
always safe. A host without `npm`, or without a way to a registry, measures the other systems.
"""

import functools
import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.errors import PeerUnavailable

_HERE = Path(__file__).resolve().parent
_PEERS = _HERE / "peers"
_ENVIRONMENTS = _HERE / ".envs"
_STAMP = ".installed"
INSTALL_SECONDS = 600.0


@functools.cache
def python_peers() -> Path:
    """Give the interpreter beside which dramatiq and huey are installed."""
    folder = _ENVIRONMENTS / "python"
    interpreter = folder / "bin" / "python"
    wanted = [_PEERS / "requirements.txt"]
    if not _is_current(folder, wanted):
        _begin("dramatiq and huey", folder)
        _run("dramatiq and huey", [sys.executable, "-m", "venv", folder])
        pip: list[str | Path] = [
            interpreter,
            "-m",
            "pip",
            "--disable-pip-version-check",
            "--quiet",
            "install",
        ]
        _run("dramatiq and huey", [*pip, "--requirement", *wanted])
        _mark_current(folder, wanted)
    return interpreter


@functools.cache
def node_peers() -> Path:
    """Give the folder of the npm project in which bullmq is installed."""
    folder = _ENVIRONMENTS / "node"
    wanted = [_PEERS / "package.json", _PEERS / "package-lock.json", _PEERS / ".npmrc"]
    npm = _on_path("npm")
    if not _is_current(folder, wanted):
        _begin("bullmq", folder)
        folder.mkdir(parents=True)
        for each in wanted:
            shutil.copy(each, folder)
        # Not `npm ci`: it refuses a lock that leaves out an optional package of another platform.
        _run("bullmq", [npm, "install", "--no-progress"], cwd=folder)
        _mark_current(folder, wanted)
    return folder


def node() -> Path:
    """Give the interpreter that runs what `node_peers` installs."""
    return _on_path("node")


def python_version(package: str) -> str:
    """Give the version in which a Python peer is installed."""
    question = f"import importlib.metadata; print(importlib.metadata.version({package!r}))"
    answer = subprocess.run(
        [python_peers(), "-c", question], capture_output=True, text=True, timeout=60, check=True
    )
    return answer.stdout.strip()


def node_version(package: str) -> str:
    """Give the version in which an npm peer is installed."""
    manifest = node_peers() / "node_modules" / package / "package.json"
    return str(json.loads(manifest.read_text("utf-8"))["version"])


def _on_path(program: str) -> Path:
    found = shutil.which(program)
    if found is None:
        raise PeerUnavailable("bullmq", f"there is no {program} on the PATH.")
    return Path(found)


def _fingerprint(wanted: Sequence[Path]) -> str:
    digest = hashlib.sha256(sys.version.encode())
    for each in wanted:
        digest.update(each.read_bytes())
    return digest.hexdigest()


def _is_current(folder: Path, wanted: Sequence[Path]) -> bool:
    stamp = folder / _STAMP
    return stamp.exists() and stamp.read_text("utf-8") == _fingerprint(wanted)


def _mark_current(folder: Path, wanted: Sequence[Path]) -> None:
    (folder / _STAMP).write_text(_fingerprint(wanted), "utf-8")


def _begin(peers: str, folder: Path) -> None:
    print(f"installing {peers} (once)", file=sys.stderr, flush=True)
    shutil.rmtree(folder, ignore_errors=True)


def _run(peers: str, command: Sequence[str | Path], *, cwd: Path | None = None) -> None:
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=INSTALL_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise PeerUnavailable(peers, f"the install took more than {INSTALL_SECONDS:.0f} s.") from error
    if done.returncode != 0:
        raise PeerUnavailable(peers, f"the install failed:\n{done.stdout[:1500].strip()}")
