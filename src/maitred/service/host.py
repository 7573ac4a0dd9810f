"""What this host can give to keep programs apart: found by trying, and told with how to get the rest."""

import contextlib
import os
import random
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

from maitred.errors import ConfigError

# Numbers that no distribution gives to anybody; one for each program that runs at the same time.
FIRST_USER, LAST_USER = 60706, 61183
_PATIENCE = 10.0


@dataclass(frozen=True, slots=True)
class Host:
    """What was found: paths of programs, empty where one is missing or does not work.

    `drops` tells that programs can run as other users, each as one of its own. `cgroup` is a directory of
    cgroup v2 in which this process may make groups with limits.
    """

    bwrap: str = ""
    bwrap_extra: tuple[str, ...] = ()
    why_no_bwrap: str = ""
    prlimit: str = ""
    setpriv: str = ""
    drops: bool = False
    cgroup: str = ""
    why_no_cgroup: str = ""

    def plain(self) -> "Host":
        """Give the same host for programs that are trusted: as the worker itself, and with limits only."""
        return replace(self, bwrap="", why_no_bwrap="this worker does not isolate its programs", drops=False)

    def enforces(self, *, network: bool = True) -> list[str]:
        """Name what a program is kept from on this host."""
        names = ["memory", "processes", "disk"] if sys.platform == "linux" else []
        if self.prlimit:
            names += ["file-size", "open-files", "cpu"]
        if self.bwrap:
            names += ["pids", "files", "ipc", "uts", *(["network"] if network else [])]
        if self.bwrap or self.setpriv:
            names.append("privileges")
        if self.drops:
            names.append("user")
        if self.cgroup:
            names.append("cgroup")
        return sorted(names)


class Finding(NamedTuple):
    """One thing that a host can give: whether it does, and if not, why and how to get it."""

    name: str
    given: bool
    words: str


_GIVES = {
    "network": "no network, not even loopback",
    "pids": "sees and signals no process but its own, and none outlives it",
    "files": "sees its own files, the system's read-only, and no others",
    "ipc": "shares no memory or queues with others",
    "uts": "cannot change the host's name",
    "privileges": "cannot gain privileges",
    "user": "runs as a user of its own",
    "memory": "all its processes together have no more memory than allowed",
    "processes": "has no more processes than allowed",
    "disk": "writes no more than allowed",
    "file-size": "writes no file that is larger than allowed",
    "open-files": "has no more files open than allowed",
    "cpu": "uses no more processor time than allowed",
    "cgroup": "limits of memory and processes are the kernel's, for all processes together",
}
_BUBBLE = ("network", "pids", "files", "ipc", "uts", "privileges")
_RLIMITS = ("file-size", "open-files", "cpu")


def findings(host: Host) -> list[Finding]:
    """Tell what a host gives, and how to get the rest."""
    given = host.enforces()
    return [
        Finding(name, name in given, gives if name in given else how_to_get(host, name))
        for name, gives in _GIVES.items()
    ]


def how_to_get(host: Host, name: str) -> str:
    """Say what a host lacks for something, and what to do about it."""
    if sys.platform != "linux":
        return "only Linux can; run the worker in a container or a virtual machine"
    if name in _BUBBLE:
        return f"{host.why_no_bwrap}; {_how_to_get_bubbles(host.why_no_bwrap)}"
    if name in _RLIMITS:
        return "there is no prlimit; install util-linux"
    if name == "user":
        return "only a worker that is started by root can choose users; bubblewrap makes up for it"
    return f"{host.why_no_cgroup}; start it with `systemd-run --user --scope -p Delegate=yes maitred work`"


def _how_to_get_bubbles(why: str) -> str:
    if "not installed" in why:
        return "install it: `apt install bubblewrap`"
    if "does not isolate" in why:
        return "leave out `isolate = false`"
    return (
        "allow user namespaces: `sysctl kernel.unprivileged_userns_clone=1 user.max_user_namespaces=10000 "
        "kernel.apparmor_restrict_unprivileged_userns=0` (those that exist); in a container also a seccomp "
        "profile that lets it unshare"
    )


def refuse_less(required: Sequence[str], host: Host) -> None:
    """Raise `ConfigError` if a host gives less than is required, with what is lacking and how to get it."""
    given = host.enforces()
    lacking = [name for name in required if name not in given]
    if lacking:
        lines = [f"  {name}: {how_to_get(host, name)}" for name in lacking]
        raise ConfigError(
            "This host cannot enforce all that is required (worker.require):\n" + "\n".join(lines)
        )


@cache
def this_host() -> Host:
    """Look at this host, once: it starts a few programs to see whether they can do what they promise."""
    if sys.platform != "linux":
        return Host(why_no_bwrap="there is no bubblewrap for this system", why_no_cgroup="it is not Linux")
    from maitred.service.cgroups import find_cgroup  # noqa: PLC0415 - it knows Linux only

    setpriv, prlimit = shutil.which("setpriv") or "", shutil.which("prlimit") or ""
    drops = bool(setpriv) and os.geteuid() == 0 and not _failure(_dropping(setpriv), "true")
    bwrap, extra, why = _find_bwrap(_dropping(setpriv) if drops else [])
    cgroup, why_no_cgroup = find_cgroup()
    return Host(bwrap, extra, why, prlimit, setpriv, drops, cgroup, why_no_cgroup)


def _dropping(setpriv: str) -> list[str]:
    user = str(LAST_USER)
    return [setpriv, "--no-new-privs", "--reuid", user, "--regid", user, "--clear-groups", "--"]


def _find_bwrap(before: list[str]) -> tuple[str, tuple[str, ...], str]:
    """Give bubblewrap, what else it can do, and why not if it cannot: each way in is really tried."""
    bwrap = shutil.which("bwrap")
    if not bwrap:
        return "", (), "bubblewrap is not installed"
    least = [
        *before,
        bwrap,
        "--unshare-user",
        "--unshare-pid",
        "--unshare-net",
        "--unshare-ipc",
        "--unshare-uts",
    ]
    tried = ["--die-with-parent", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--", "true"]
    # Whoever may make namespaces of his own inside could mount memory without a bound.
    if not _failure([*least, "--disable-userns"], *tried):
        return bwrap, ("--disable-userns",), ""
    why = _failure(least, *tried)
    return ("", (), why) if why else (bwrap, (), "")


def _failure(before: list[str], *argv: str) -> str:
    """Run a program, and give what it says if it fails; nothing if it does not."""
    try:
        done = subprocess.run(
            [*before, *argv],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PATIENCE,
            check=False,
            cwd="/",
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if not done.returncode:
        return ""
    return done.stderr.decode(errors="replace").strip() or "it failed"


@contextlib.contextmanager
def own_user() -> Iterator[int]:
    """Lend a user's number that no other program on this host has now; OSError if there is none left.

    A socket with that name in the kernel is the sign that it is taken: it goes with whoever holds it.
    """
    with socket.socket(socket.AF_UNIX) as sign:
        yield _take(sign)


def _take(sign: socket.socket) -> int:
    for user in random.sample(range(FIRST_USER, LAST_USER), LAST_USER - FIRST_USER):
        with contextlib.suppress(OSError):
            sign.bind(f"\0maitred/user/{user}")
            return user
    raise OSError("all users that programs can run as are taken")
