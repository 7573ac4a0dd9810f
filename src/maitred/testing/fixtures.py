"""What pytest gives to tests that ask for it by name."""

from collections.abc import Iterator

import pytest

from maitred.testing.rehearsals import Rehearsals


@pytest.fixture
def rehearse() -> Iterator[Rehearsals]:
    """Take queues into memory for as long as the test runs; it is called with a queue and its settings."""
    rehearsals = Rehearsals()
    yield rehearsals
    rehearsals.close()
