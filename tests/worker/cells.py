"""Sandboxes to try to get out of: each way in which a host can keep programs, on this one."""

import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from maitred.core.settings import Settings
from maitred.service.host import Host, this_host
from maitred.worker.program import Ended
from maitred.worker.sandbox import Sandbox
from maitred.worker.undertaker import Undertaker

# As the host allows; without bubblewrap, as root; without bubblewrap, as anybody.
KINDS = ("bubble", "users", "plain")


def host_of(kind: str) -> Host:
    """Give this host with so much of what it has; skip where it has less."""
    host = this_host()
    if kind == "bubble":
        if not host.bwrap:
            pytest.skip(f"no bubblewrap: {host.why_no_bwrap}")
        return host
    if kind == "users":
        if not host.drops:
            pytest.skip("only root can run programs as other users")
        return replace(host, bwrap="")
    return host.plain()


class Cell:
    """A sandbox of a kind, with small limits."""

    def __init__(self, kind: str, undertaker: Undertaker) -> None:
        self.kind, self.host = kind, host_of(kind)
        self._undertaker = undertaker
        self.settings = Settings(
            sandbox_memory=64 << 20,
            sandbox_processes=20,
            sandbox_file_size=8 << 20,
            sandbox_disk=16 << 20,
            sandbox_open_files=64,
            kill_after=100_000,
            private_addresses=True,
        )

    def with_settings(self, **changes: Any) -> Sandbox:
        return Sandbox(replace(self.settings, **changes), self.host, self._undertaker)

    async def sh(
        self, script: str, files: Mapping[str, Mapping[str, str]] | None = None, **more: Any
    ) -> Ended:
        """Run a script of the shell in a room of its own."""
        async with self.with_settings().room(files) as room:
            return await room.run(["sh", "-c", script], **more)


@contextlib.asynccontextmanager
async def cell_of(kind: str) -> AsyncIterator[Cell]:
    undertaker = Undertaker()
    try:
        yield Cell(kind, undertaker)
    finally:
        undertaker.close()
