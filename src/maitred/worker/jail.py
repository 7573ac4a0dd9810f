"""The walls around a program: how it is started so that it has what its queue allows, and no more.

With bubblewrap a program has its own network, processes, ipc and host name, sees the system's directories
read-only and nothing else of the file system but its own. Without it, it is an ordinary process of a user
of its own where the worker may choose one. In both, rlimits are set by `prlimit` right before it starts:
a limit of processes counts within the user namespace, so it has to be set inside of it.
"""

import os
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from maitred.core.settings import SECOND, Settings
from maitred.service.host import Host
from maitred.worker.tree import threads_of

HOME = "/home/job"
USER = 1000
PASSED_ON = ("PATH", "LANG", "LC_ALL", "TZ")
# A program's data may be more than its memory for a moment: the watch over all of its processes is the rule,
# and the rlimit stops the one that is quicker than the watch.
_DATA = 4
_SHARED_MEMORY = 64 << 20
_ADDRESSES = ("hosts", "resolv.conf")
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
# Where a program in a bubble may be, beside its own directories and those that are made visible.
SEEN = (*_SYSTEM, "/etc", "/proc", "/dev")
_OF_ETC = (
    "alternatives",
    "ca-certificates",
    "ca-certificates.conf",
    "debian_version",
    "fonts",
    "java*",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "locale.alias",
    "locale.conf",
    "localtime",
    "magic",
    "mime.types",
    "nsswitch.conf",
    "os-release",
    "perl",
    "pki/ca-trust",
    "pki/tls/certs",
    "protocols",
    "python3*",
    "R",
    "services",
    "ssl/certs",
    "ssl/openssl.cnf",
    "terminfo",
    "texmf",
    "timezone",
)


class Limits(NamedTuple):
    """What one program and all that it starts may use; sizes in bytes, `cpu` in seconds of each process."""

    memory: int
    processes: int
    file_size: int
    open_files: int
    disk: int
    cpu: int
    network: bool

    @classmethod
    def of(cls, settings: Settings) -> "Limits":
        """Give those of a queue. Without one for cpu, all cores may be busy for the time limit."""
        cpu = settings.sandbox_cpu or settings.time_limit * (os.cpu_count() or 1)
        return cls(
            memory=settings.sandbox_memory,
            processes=settings.sandbox_processes,
            file_size=settings.sandbox_file_size,
            open_files=settings.sandbox_open_files,
            disk=settings.sandbox_disk,
            cpu=-(-cpu // SECOND),
            network=settings.sandbox_network,
        )

    def as_rlimits(self, others: int = 0) -> list[str]:
        """Give them as arguments of `prlimit`, beside so many processes of the same user that are others'."""
        return [
            "--core=0",
            f"--cpu={self.cpu}:{self.cpu + 5}",
            f"--data={self.memory * _DATA}",
            f"--fsize={self.file_size}",
            f"--nproc={self.processes + others}",
            f"--nofile={self.open_files}",
        ]


class Walls(NamedTuple):
    """How programs in one directory are started: as which user (0: the worker's own), and within what."""

    host: Host
    limits: Limits
    place: Path
    user: int
    visible: tuple[str, ...]

    @property
    def home(self) -> Path:
        """Where the program's files are, as the worker sees it."""
        return self.place / "home"

    def environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """Give all that the program sees of an environment."""
        kept = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        if self.host.bwrap:
            return {"PATH": os.defpath, **kept, "HOME": HOME, **(more or {})}
        return {**kept, "HOME": str(self.home), "TMPDIR": str(self.place / "tmp"), **(more or {})}

    def around(
        self, argv: Sequence[str], cwd: str, note: int | None = None, *, terminal: bool = False
    ) -> list[str]:
        """Give the arguments that start a program within the walls; bubblewrap writes into `note`."""
        within = list(argv)
        if self.host.prlimit:
            others = 0 if self.host.bwrap or self.user else threads_of(os.geteuid())
            within = [self.host.prlimit, *self.limits.as_rlimits(others), "--", *argv]
        if self.host.bwrap:
            if terminal:
                # Its terminal becomes the controlling one inside, where its session is.
                within = ["setsid", "--ctty", "--wait", "--", *within]
            within = [*self._bubble(cwd, note, terminal=terminal), "--", *within]
        elif terminal:
            within = ["setsid", "--ctty", "--wait", "--", *within]
        return [*self._dropped(), *within]

    def _dropped(self) -> list[str]:
        """Give up all privileges, and end with the worker: bubblewrap does the latter by itself."""
        if not self.host.setpriv:
            return []
        words = [self.host.setpriv, "--no-new-privs"]
        if self.user:
            user = str(self.user)
            words += ["--reuid", user, "--regid", user, "--clear-groups"]
            words += ["--inh-caps=-all", "--bounding-set=-all"]
        elif self.host.bwrap:
            return []
        return [*words, *(() if self.host.bwrap else ("--pdeathsig", "KILL")), "--"]

    def _bubble(self, cwd: str, note: int | None, *, terminal: bool) -> list[str]:
        spaces = ["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
        if not self.limits.network:
            spaces.append("--unshare-net")
        if not terminal:
            spaces.append("--new-session")
        if note is not None:
            spaces += ["--info-fd", str(note)]
        shared = str(min(_SHARED_MEMORY, self.limits.memory))
        return [
            self.host.bwrap,
            *spaces,
            *self.host.bwrap_extra,
            *("--die-with-parent", "--hostname", "job", "--uid", str(USER), "--gid", str(USER)),
            *_system(self.visible),
            *("--proc", "/proc", "--dev", "/dev", "--size", shared, "--tmpfs", "/dev/shm"),  # noqa: S108
            *("--bind", str(self.place / "tmp"), "/tmp", "--bind", str(self.home), HOME),  # noqa: S108
            *("--ro-bind", str(self.place / "etc" / "passwd"), "/etc/passwd"),
            *("--ro-bind", str(self.place / "etc" / "group"), "/etc/group"),
            *self._addresses(),
            # What is left of / and /dev would be memory without a bound.
            *("--remount-ro", "/dev", "--remount-ro", "/", "--chdir", str(Path(HOME) / cwd)),
        ]

    def _addresses(self) -> list[str]:
        """Tell names of hosts to whoever can reach them; others need not know who is there."""
        if self.limits.network:
            return [word for name in _ADDRESSES for word in ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")]
        return ["--ro-bind", str(self.place / "etc" / "hosts"), "/etc/hosts"]


@cache
def _system(visible: tuple[str, ...]) -> list[str]:
    """Give the arguments for the system's own directories, read-only; links stay links. Looked at once."""
    words: list[str] = []
    etc = [str(path) for name in _OF_ETC for path in sorted(Path("/etc").glob(name))]
    for name in (*_SYSTEM, *etc, *visible):
        path = Path(name)
        if path.is_symlink() and name in _SYSTEM:
            words += ["--symlink", str(path.readlink()), name]
        elif path.exists():
            words += ["--ro-bind", name, name]
    return words
