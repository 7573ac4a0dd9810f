"""Looks at a live queue for broken invariants, page by page, so that no step blocks the server for long."""

from collections.abc import Awaitable, Callable
from typing import Any

from maitred.core.invariants import Violation
from maitred.store.port import Progress
from maitred.store.valkey.records import text

# What each verb looks at, in an order in which the repair of one part can rely on the parts before.
PARTS = (
    ("check_notices", ("notices", "notices_due", "notice_heads", "telling_jobs", "abandon", "abandon_next")),
    ("check", ("jobs", "stacks", "nonces", "places", "own", "ids", "ended", "kept", "expiry")),
    ("check_ledger", ("held_jobs", "held", "holds", "outbox")),
    ("check_output", ("outputs", "named_artifacts", "artifacts", "about")),
    ("check_batches", ("batch_jobs", "batch_rows", "batches", "batch_ids", "batch_holds")),
    ("check_batches", ("batch_list", "batch_age", "batch_work", "batch_send", "batch_counts")),
    ("check_ledger", ("counters",)),
    ("check_floor", ("totals",)),
)
PAGE = 200


async def check(
    call: Callable[..., Awaitable[Any]], *, repair: bool, progress: Progress | None
) -> list[Violation]:
    """Look at every part in turn by `call`, which runs a verb; give what was found."""
    found: list[Violation] = []
    for verb, part in [(verb, part) for verb, parts in PARTS for part in parts]:
        cursors, looked_at = [b"0"], 0
        while cursors:
            following, seen, faults, long = await call(verb, part, cursors.pop(), PAGE, int(repair))
            cursors += [cursor for cursor in (following, *long) if cursor]
            looked_at += seen
            found += [
                Violation(text(faults[i]), text(faults[i + 1]), bool(faults[i + 2]))
                for i in range(0, len(faults), 3)
            ]
            if progress:
                progress(part, looked_at)
    return found
