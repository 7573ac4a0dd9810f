"""The sandbox: rooms for a queue's programs, as good as the host allows, and what that is in words."""

import asyncio
import contextlib
import tempfile
from base64 import b64decode
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

from maitred.core.settings import SECOND, Settings
from maitred.service.host import Host, own_user
from maitred.worker.cgroup import Group
from maitred.worker.files import lay_out
from maitred.worker.jail import USER, Limits, Walls
from maitred.worker.removal import remove
from maitred.worker.room import Room
from maitred.worker.undertaker import Undertaker

OUTPUT_LIMIT = 1 << 20
ARTIFACT_LIMIT = 4 << 20
_PASSWD = f"job:x:{USER}:{USER}:job:/home/job:/bin/sh\n"
_GROUP = f"job:x:{USER}:\n"


class Sandbox:
    """Makes rooms for the programs of one queue. `visible` are more directories that they can read."""

    def __init__(
        self, settings: Settings, host: Host, undertaker: Undertaker, visible: Sequence[str] = ()
    ) -> None:
        self._settings, self._host, self._undertaker = settings, host, undertaker
        self._limits, self._visible = Limits.of(settings), tuple(visible)

    @property
    def enforces(self) -> list[str]:
        """Name what programs are kept from here."""
        return self._host.enforces(network=not self._limits.network)

    @property
    def output_limit(self) -> int:
        """How much of what a run prints is streamed."""
        return OUTPUT_LIMIT

    @property
    def artifact_limit(self) -> int:
        """How many bytes of files are kept of one job."""
        return ARTIFACT_LIMIT

    @contextlib.asynccontextmanager
    async def room(self, files: Mapping[str, Mapping[str, str]] | None = None) -> AsyncIterator[Room]:
        """Make a room with these files in it, and clear it away afterwards.

        Raises OSError if there is no place for it, `FetchFailed` if a file cannot be had.
        """
        contents = await self._contents(files or {})
        with contextlib.ExitStack() as stack:
            user = stack.enter_context(own_user()) if self._host.drops else 0
            place = Path(tempfile.mkdtemp(prefix="maitred-job-"))
            self._undertaker.expect(place, user=user)
            walls = Walls(self._host, self._limits, place, user, self._visible)
            furnished = asyncio.ensure_future(asyncio.to_thread(_furnish, walls, contents))
            group = None
            try:
                await asyncio.shield(furnished)
                group = Group(Path(self._host.cgroup), self._limits) if self._host.cgroup else None
                yield Room(
                    walls,
                    self._settings.kill_after / SECOND,
                    group,
                    lambda pid: self._undertaker.expect(place, pid, user),
                )
            finally:
                # A thread that still writes files would bring the directory back.
                await asyncio.wait([furnished])
                if group:
                    group.close()
                await asyncio.to_thread(remove, place)
                self._undertaker.forget(place)

    async def _contents(self, files: Mapping[str, Mapping[str, str]]) -> dict[str, bytes]:
        """Give what the files hold, as bytes."""
        return {name: _inline(file) for name, file in files.items()}


def _inline(file: Mapping[str, str]) -> bytes:
    return file["text"].encode() if "text" in file else b64decode(file["base64"])


def _furnish(walls: Walls, contents: dict[str, bytes]) -> None:
    """Make the directories of a room; only the worker can change what is above home and tmp."""
    place, user = walls.place, walls.user
    for name in ("home", "tmp", "etc"):
        (place / name).mkdir(0o755 if name == "etc" else 0o700)
    (place / "etc" / "passwd").write_text(_PASSWD)
    (place / "etc" / "group").write_text(_GROUP)
    lay_out(walls.home, contents, user)
    if user:
        place.chmod(0o711)
        lay_out(place / "tmp", {}, user)
