"""Following a job to its end: its document, kept up to date with what the server tells.

A server that has no stream of events is asked again and again, with a pause that begins at a tenth of a
second when the job is first seen and when it starts, and grows to two seconds: a short job is heard of at
once, and a long line costs the server little.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from maitred.client import Client
from maitred.errors import NotFound, StoreUnavailable, UnknownJob
from maitred.wire import JobDocument, OutputEvent, Progress, ProgressEvent, StateEvent, WatchEvent

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 2.0
GROWTH = 1.5


async def follow(
    client: Client, job: JobDocument, hear: Callable[[OutputEvent], None] = lambda _: None
) -> AsyncGenerator[JobDocument, None]:
    """Give a version of a job anew whenever there is news of it, at last when it has ended.

    What it says goes to `hear`. `UnknownJob` if it is deleted before.
    """
    try:
        async with aclosing(client.watch(job.queue, job.id, job.version)) as events:
            async for event in events:
                if isinstance(event, OutputEvent):
                    hear(event)
                else:
                    job = with_news(job, event)
                    yield job
    except (NotFound, StoreUnavailable):
        # The server is an older one, or the job is gone: then that is what it answers now.
        async with aclosing(_ask_again(client, job)) as asked:
            async for answer in asked:
                yield answer
    if job.state == "deleted":
        raise UnknownJob(job.queue, job.id)


def with_news(job: JobDocument, event: WatchEvent) -> JobDocument:
    """Give a job as it is after an event."""
    if isinstance(event, OutputEvent):
        return job
    if isinstance(event, ProgressEvent):
        return job.model_copy(update={"progress": Progress(fraction=event.fraction, message=event.message)})
    news = {name: getattr(event, name) for name in type(event).model_fields if name not in ("id", "event")}
    if isinstance(event, StateEvent) and event.phase != job.phase:
        news |= {"position": None, "estimate": None, "waiting_for": None}
    return job.model_copy(update=news)


async def _ask_again(client: Client, job: JobDocument) -> AsyncGenerator[JobDocument, None]:
    pause = FIRST_PAUSE
    while job.state not in ("completed", "failed"):
        await asyncio.sleep(pause)
        before, job = job, await client.job(job.queue, job.id, job.version)
        pause = FIRST_PAUSE if job.phase != before.phase else min(LONGEST_PAUSE, pause * GROWTH)
        yield job
