"""Held jobs that stand in line because no slot comes free for them to leave it."""

import pytest

from maitred.core.classes import DurationClass
from maitred.core.gate import HELD_PER_WALK
from maitred.core.job import Order, Stop
from maitred.core.settings import MINUTE, SECOND, Settings
from maitred.store.port import Store
from tests.conformance.party import NEED, U1, U2, U7

CLASSES = (DurationClass("fast", 3 * SECOND), DurationClass("slow", 30 * SECOND))


@pytest.mark.parametrize(("held", "halted"), [(HELD_PER_WALK - 1, True), (HELD_PER_WALK, False)])
async def test_a_job_behind_held_ones_is_made_room_for_unless_they_are_too_many_to_look_at(
    store: Store, held: int, *, halted: bool
) -> None:
    await store.configure(Settings(lease=60 * MINUTE, classes=CLASSES))
    await store.join("w", 1, [NEED])
    assert not (await store.admit(Order("shell", U7, NEED, b""))).denied
    await store.hold("submitter", str(U1), "me", "")
    await store.put([Order(f"j{number}", U1, NEED, b"", delay=0) for number in range(held)])
    await store.put([Order("mine", U2, NEED, b"", delay=0)])
    sent = await store.park("w", 0.1)
    assert any(isinstance(message, Stop) for message in sent) is halted
