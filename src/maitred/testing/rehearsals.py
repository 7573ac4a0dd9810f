"""The rehearsals of one test: they share a clock, and end with it."""

from typing import Any

import httpx

from maitred.service.queue import Queue
from maitred.testing.clock import Clock
from maitred.testing.rehearsal import Rehearsal


class Rehearsals:
    """Makes rehearsals, each of one queue; `close` gives all queues their own stores back."""

    def __init__(self) -> None:
        self.clock = Clock()
        self._open: list[Rehearsal] = []

    def __call__(
        self,
        queue: Queue,
        *,
        slots: int = 1,
        receiver: httpx.AsyncBaseTransport | None = None,
        **settings: Any,
    ) -> Rehearsal:
        """Rehearse a queue, with these settings of its table in `maitred.toml`."""
        rehearsal = Rehearsal(queue, slots=slots, clock=self.clock, receiver=receiver, **settings)
        self._open.append(rehearsal)
        return rehearsal

    def close(self) -> None:
        """End all of them, the last one first."""
        while self._open:
            self._open.pop().close()
