"""The clock of a rehearsal: it stands still unless somebody moves it."""

from datetime import UTC, datetime, timedelta

from maitred.core.settings import SECOND

START = datetime(2030, 1, 1, 12, tzinfo=UTC)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Clock:
    """A time that goes only forward, and only when it is told to. Stores ask it in whole microseconds."""

    def __init__(self, start: datetime = START) -> None:
        self._now = (start - _EPOCH) // timedelta(microseconds=1)

    def __call__(self) -> int:
        """Give the time as stores have it."""
        return self._now

    @property
    def now(self) -> datetime:
        """The time as programs have it, in UTC."""
        return _EPOCH + timedelta(microseconds=self._now)

    def advance(self, by: float | timedelta) -> None:
        """Let so many seconds pass; `ValueError` for less than none."""
        seconds = by.total_seconds() if isinstance(by, timedelta) else by
        if seconds < 0:
            raise ValueError("time goes only forward")
        self._now += round(seconds * SECOND)

    def reach(self, moment: int) -> None:
        """Go to a moment of the store's, unless it is past."""
        self._now = max(self._now, moment)
