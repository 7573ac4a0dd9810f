"""What tests of workers share: a worker for the time of a block, and settings in seconds."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from maitred.core.settings import SECOND, Settings
from maitred.worker import Worker


@asynccontextmanager
async def at_work(worker: Worker) -> AsyncIterator[Worker]:
    """Run a worker for the time of the block, and stop it in order afterwards."""
    task = asyncio.create_task(worker.run())
    try:
        yield worker
    finally:
        worker.stop()
        await task


def changed(settings: Settings, changes: dict[str, Any]) -> Settings:
    """Give other settings; a fraction is a duration in seconds."""
    fields: dict[str, Any] = {
        name: round(value * SECOND) if isinstance(value, float) else value for name, value in changes.items()
    }
    return replace(settings, **fields)
