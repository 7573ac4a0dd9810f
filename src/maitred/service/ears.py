"""Hearing of single jobs: whoever follows one waits for the next time that something is told of it."""

import asyncio
import contextlib
from collections.abc import Iterator, Sequence

from maitred.core.events import Entry
from maitred.service.foresight import Foresight
from maitred.service.recent import of_job


class Ears:
    """Who follows which job of one queue, by record."""

    def __init__(self, foresight: Foresight) -> None:
        self._foresight = foresight
        self._bells: dict[int, set[asyncio.Event]] = {}
        foresight.listeners.append(self)

    @contextlib.contextmanager
    def follow(self, record: int) -> Iterator[asyncio.Event]:
        """Give an event that is set whenever something was told of the job, or may have been missed."""
        bell = asyncio.Event()
        self._bells.setdefault(record, set()).add(bell)
        try:
            yield bell
        finally:
            self._bells[record].discard(bell)
            if not self._bells[record]:
                del self._bells[record]

    def hurry(self) -> None:
        """Hear the next thing as soon as it is told: somebody looks at it now."""
        self._foresight.hurry()

    def hear(self, entries: Sequence[Entry]) -> None:
        """Hear what happened."""
        if not self._bells:
            return
        for entry in entries:
            for event in entry.events:
                if told := of_job(event):
                    for bell in self._bells.get(told.record, ()):
                        bell.set()

    def missed(self) -> None:
        """Hear that something was missed."""
        for bells in self._bells.values():
            for bell in bells:
                bell.set()
