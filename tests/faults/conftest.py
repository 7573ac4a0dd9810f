"""Each test has a scene of its own, and leaves nothing of it behind."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.faults.scene import Scene


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    async with Scene(tmp_path) as scene:
        yield scene
