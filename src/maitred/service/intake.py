"""Taking jobs in: bodies are checked, go to the store in large calls, and each gets its answer in its place.

One call carries up to 128 jobs, and the next bodies are checked while some are under way; both together are
nearly the whole speed of a bulk submit. The calls begin in the order of the list, and a store carries them
out in that order, so the jobs arrive in it too.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from maitred.core.job import Order, Outcome, Put, Refusal, View
from maitred.core.settings import Settings
from maitred.errors import (
    BatchReporting,
    BatchSealed,
    Fault,
    Forbidden,
    Interactive,
    InvalidJob,
    LockLost,
    LongerDuration,
    MaitredError,
    OtherBatch,
    OtherSubmitter,
    QueueFull,
    StoreError,
)
from maitred.service import tracing
from maitred.service.caller import HOUSE, Caller
from maitred.service.order import HANDLER, allowed_by, order_of
from maitred.service.per_queue import end
from maitred.store.port import Store

JOBS_PER_CALL = 128
CALLS_AT_ONCE = 4
CHECKED_AT_ONCE = 16


class Accepted(NamedTuple):
    """A job that was taken in."""

    id: str
    outcome: Outcome
    version: int


async def accept(
    store: Store,
    settings: Settings,
    bodies: Sequence[object],
    *,
    only_new: bool = False,
    caller: Caller = HOUSE,
) -> list[Accepted | MaitredError]:
    """Take in as many of the jobs as possible; answers are in the order of the bodies.

    With `only_new` a key that its batch has is passed over.
    """
    with tracing.span("submit many", "producer", queue=store.queue, jobs=len(bodies)):
        return await _accept(store, settings, bodies, only_new=only_new, caller=caller)


async def _accept(
    store: Store, settings: Settings, bodies: Sequence[object], *, only_new: bool, caller: Caller
) -> list[Accepted | MaitredError]:
    answers: list[Accepted | MaitredError | None] = [None] * len(bodies)
    under_way: deque[asyncio.Task[None]] = deque()
    try:
        for first in range(0, len(bodies), JOBS_PER_CALL):
            orders = await _check(bodies[first : first + JOBS_PER_CALL], first, settings, answers, caller)
            if caller.limited:
                orders = await _own(store, orders, answers, caller)
            if only_new:
                orders = [(index, order._replace(only_new=True)) for index, order in orders]
            if len(under_way) == CALLS_AT_ONCE:
                await under_way.popleft()
            under_way.append(asyncio.create_task(_send(store, settings, orders, answers)))
        await asyncio.gather(*under_way)
    finally:
        await end(under_way)
    return [answer for answer in answers if answer is not None]


async def accept_shown(
    store: Store, settings: Settings, body: object, caller: Caller = HOUSE
) -> tuple[Accepted, View | None]:
    """Take in one job and show it as it is then; raises what `accept` answers."""
    with tracing.span("submit", "producer", queue=store.queue) as span:
        order = caller.order(order_of(body, settings, allowed_by(settings), caller.key.id), settings)
        span.note(job=order.id)
        if caller.limited and (error := (await not_own(store, [order], caller))[0]):
            raise error
        put, view = await store.put_shown(order)
        if not isinstance(put, Put):
            raise await refused(put, order, store, settings)
        return Accepted(order.id, put.outcome, put.version), view


async def accept_one(store: Store, settings: Settings, body: object) -> Accepted:
    """Take in one job; raises what `accept` answers."""
    with tracing.span("submit", "producer", queue=store.queue) as span:
        order = order_of(body, settings, allowed_by(settings))
        span.note(job=order.id)
        [put] = await store.put([order])
        if not isinstance(put, Put):
            raise await refused(put, order, store, settings)
        return Accepted(order.id, put.outcome, put.version)


async def _check(
    bodies: Sequence[object],
    first: int,
    settings: Settings,
    answers: list[Accepted | MaitredError | None],
    caller: Caller,
) -> list[tuple[int, Order]]:
    orders = []
    allowed = allowed_by(settings)
    for index, body in enumerate(bodies, first):
        if index % CHECKED_AT_ONCE == 0:
            # Let the call before leave meanwhile, and others of this loop have their turn.
            await asyncio.sleep(0)
        try:
            order = order_of(body, settings, allowed, caller.key.id)
            orders.append((index, caller.order(order, settings)))
        except MaitredError as error:
            answers[index] = error
    return orders


async def _own(
    store: Store,
    orders: list[tuple[int, Order]],
    answers: list[Accepted | MaitredError | None],
    caller: Caller,
) -> list[tuple[int, Order]]:
    """Keep the orders that touch nothing of others; the others have their answers."""
    try:
        refusals: Sequence[MaitredError | None] = await not_own(store, [order for _, order in orders], caller)
    except StoreError as error:
        refusals = [error] * len(orders)
    kept = []
    for (index, order), refusal in zip(orders, refusals, strict=True):
        if refusal is None:
            kept.append((index, order))
        else:
            answers[index] = refusal
    return kept


async def not_own(store: Store, orders: Sequence[Order], caller: Caller) -> list[MaitredError | None]:
    """Say of each order whether its key or its batch is another submitter's, which this caller cannot touch.

    The store refuses a key only until its job has ended.
    """
    if not orders:
        return []
    views = await store.read([order.id for order in orders])
    batches = {id: await store.batch(id) for id in {order.batch for order in orders if order.batch}}
    errors: list[MaitredError | None] = []
    for order, view in zip(orders, views, strict=True):
        batch = batches.get(order.batch)
        if view is not None and not caller.owns(view.job.submitter):
            errors.append(OtherSubmitter())
        elif batch is not None and not caller.owns(batch.submitter):
            errors.append(Forbidden("the batch is another submitter's"))
        else:
            errors.append(None)
    return errors


async def _send(
    store: Store,
    settings: Settings,
    orders: list[tuple[int, Order]],
    answers: list[Accepted | MaitredError | None],
) -> None:
    """Make one call; if the store fails, that is the answer of each job in it."""
    if not orders:
        return
    try:
        puts = await store.put([order for _, order in orders])
    except StoreError as error:
        for index, _ in orders:
            answers[index] = error
        return
    for (index, order), put in zip(orders, puts, strict=True):
        if isinstance(put, Put):
            answers[index] = Accepted(order.id, put.outcome, put.version)
        else:
            answers[index] = await refused(put, order, store, settings)


async def refused(refusal: Refusal, order: Order, store: Store, settings: Settings) -> MaitredError:
    """Give the error that a refusal of the store is."""
    if refusal == "unknown-handler":
        return InvalidJob([Fault("run.handler", await _known_handlers(order, store))])
    return {
        "no-class": InvalidJob([Fault("class", "is no longer a class of this queue: its settings changed")]),
        "other-submitter": OtherSubmitter(),
        "longer-duration": LongerDuration(),
        "interactive": Interactive(),
        "full-total": QueueFull("total", settings.max_total),
        "full-per_submitter": QueueFull("per_submitter", settings.max_per_submitter),
        "no-batch": InvalidJob([Fault("batch", "is not a batch of this queue")]),
        "sealed": BatchSealed(),
        "other-batch": OtherBatch(),
        "reporting": BatchReporting(),
        "lock-lost": LockLost(),
    }[refusal]


async def _known_handlers(order: Order, store: Store) -> str:
    status = await store.status()
    served = {need for worker in status.workers for need in worker.serves if need.startswith(HANDLER)}
    known = ", ".join(sorted(need.removeprefix(HANDLER) for need in served)) or "none at the moment"
    return f"no worker has ever served {order.need.removeprefix(HANDLER)!r}; served are: {known}"
