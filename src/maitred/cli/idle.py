"""The app of `maitred bench`: a handler that does nothing, so that all that is measured is the way to it."""

from maitred.service.queue import Queue

queue = Queue("default")


@queue.handler("nothing")
async def nothing() -> None:
    """Do nothing."""
