"""Damage of a live store: each kind of it is found under its name, and repaired."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from maitred.core.invariants import violations
from maitred.store.port import Store


def every(damage: Mapping[str, Sequence[Callable[..., Any]]]) -> pytest.MarkDecorator:
    """Run a test with each `damage`, and the `code` that names it."""
    return pytest.mark.parametrize(
        ("code", "damage"),
        [(code, each) for code, kinds in damage.items() for each in kinds],
        ids=lambda value: value if isinstance(value, str) else value.__name__,
    )


async def found(store: Store) -> set[str]:
    """Look for damage without repairing it; give its names."""
    violated = await store.check()
    assert not any(violation.repaired for violation in violated)
    return {violation.code for violation in violated}


async def healed(store: Store) -> None:
    """Repair, twice at most; then nothing is wrong, and the reference agrees."""
    repaired = await store.check(repair=True)
    assert all(violation.repaired for violation in repaired), repaired
    await store.check(repair=True)
    assert await store.check() == []
    assert violations(await store.snapshot(), (await store.status()).settings) == []
