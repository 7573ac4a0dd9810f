"""The sandbox: rooms for a queue's programs, as good as the host allows, and what that is in words."""

import asyncio
import contextlib
import hashlib
import os
import stat
import tempfile
from base64 import b64decode
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import ParamSpec

from maitred.core.settings import SECOND, Settings
from maitred.service.fetch import FetchFailed, fetch
from maitred.service.host import Host, own_user
from maitred.worker.cgroup import Group
from maitred.worker.files import hand_over, lay_out
from maitred.worker.jail import USER, Limits, Walls
from maitred.worker.removal import remove
from maitred.worker.room import Room
from maitred.worker.undertaker import Undertaker

P = ParamSpec("P")
_PASSWD = f"job:x:{USER}:{USER}:job:/home/job:/bin/sh\n"
_GROUP = f"job:x:{USER}:\n"
_HOSTS = "127.0.0.1 localhost job\n::1 localhost job\n"


class Sandbox:
    """Makes rooms for the programs of one queue. `visible` are more directories that they can read."""

    def __init__(
        self, settings: Settings, host: Host, undertaker: Undertaker, visible: Sequence[str] = ()
    ) -> None:
        self._host, self._undertaker, self._visible = host, undertaker, tuple(visible)
        self.heed(settings)

    def heed(self, settings: Settings) -> None:
        """Take in settings, for rooms that are made from now on."""
        self._settings, self._limits = settings, Limits.of(settings)

    @property
    def enforces(self) -> list[str]:
        """Name what programs are kept from here."""
        return self._host.enforces(network=not self._limits.network)

    @property
    def output_limit(self) -> int:
        """How much is kept of what a run prints."""
        return self._settings.output_limit

    @property
    def artifact_limit(self) -> int:
        """How many bytes of files are kept of one job."""
        return self._settings.artifact_limit

    @contextlib.asynccontextmanager
    async def room(self, files: Mapping[str, Mapping[str, str]] | None = None) -> AsyncIterator[Room]:
        """Make a room with these files in it, and clear it away afterwards.

        Raises OSError if there is no place for it, `FetchFailed` if a file cannot be had.
        """
        with contextlib.ExitStack() as stack:
            user = stack.enter_context(own_user()) if self._host.drops else 0
            place = Path(tempfile.mkdtemp(prefix=f"maitred-job-{os.getpid()}-", dir=_where(user)))
            self._undertaker.expect(place, user=user)
            walls = Walls(self._host, self._limits, place, user, self._visible)
            group = None
            try:
                await self._furnish(walls, files or {})
                group = Group(Path(self._host.cgroup), self._limits) if self._host.cgroup else None
                yield Room(
                    walls,
                    self._settings.kill_after / SECOND,
                    group,
                    lambda pid: self._undertaker.expect(place, pid, user),
                )
            finally:
                if group:
                    group.close()
                await asyncio.to_thread(remove, place)
                self._undertaker.forget(place)

    async def _furnish(self, walls: Walls, files: Mapping[str, Mapping[str, str]]) -> None:
        """Make the directories of a room with the job's files: one after the other, as they may be large."""
        inline = {name: _inline(file) for name, file in files.items() if "url" not in file}
        await _to_its_end(_build, walls, inline)
        left = self._limits.disk
        for name, file in files.items():
            if "url" in file:
                content = await self._fetched(file["url"], file["sha256"], min(left, self._limits.file_size))
                left -= len(content)
                await _to_its_end(lay_out, walls.home, {name: content}, walls.user)

    async def _fetched(self, url: str, sha256: str, most: int) -> bytes:
        content = await fetch(url, most_bytes=most, private=self._settings.private_addresses)
        found = hashlib.sha256(content).hexdigest()
        if found != sha256:
            raise FetchFailed(url, f"has the sha256 {found}, not {sha256} as was told", again=False)
        return content


async def _to_its_end(function: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
    """Call a function in a thread. A thread that still writes files would bring a removed directory back."""
    call = asyncio.ensure_future(asyncio.to_thread(function, *args, **kwargs))
    try:
        await asyncio.shield(call)
    finally:
        await asyncio.wait([call])


def _where(user: int) -> str:
    """Give the directory for rooms; OSError if a user of its own could not get there."""
    where = Path(tempfile.gettempdir()).resolve()
    if user and not all(path.stat().st_mode & stat.S_IXOTH for path in (where, *where.parents)):
        raise OSError(f"other users cannot reach {where}; let TMPDIR name a directory that all can pass")
    return str(where)


def _inline(file: Mapping[str, str]) -> bytes:
    return file["text"].encode() if "text" in file else b64decode(file["base64"])


def _build(walls: Walls, contents: dict[str, bytes]) -> None:
    """Make the directories, with what is at hand; only the worker can change what is above home and tmp."""
    place, user = walls.place, walls.user
    for name in ("home", "tmp", "etc"):
        (place / name).mkdir(0o755 if name == "etc" else 0o700)
    (place / "etc" / "passwd").write_text(_PASSWD)
    (place / "etc" / "group").write_text(_GROUP)
    (place / "etc" / "hosts").write_text(_HOSTS)
    lay_out(walls.home, contents, user)
    for path in (walls.home, place / "tmp"):
        hand_over(path, user)
    if user:
        place.chmod(0o711)
