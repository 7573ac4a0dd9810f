"""What pytest gives to tests that ask for it by name."""

from collections.abc import Iterator

import pytest

from maitred.testing.rehearsals import Rehearsals


@pytest.fixture
def rehearse() -> Iterator[Rehearsals]:
    """Take queues into memory, as `rehearsal = rehearse(q, attempts=1)`, for as long as the test runs."""
    rehearsals = Rehearsals()
    yield rehearsals
    rehearsals.close()
