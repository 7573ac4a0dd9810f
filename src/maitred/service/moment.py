"""Times as people and programs read them: whole microseconds in, ISO 8601 in UTC out, and back."""

from datetime import UTC, datetime, timedelta

from maitred.core.settings import SECOND

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_PLAIN = _EPOCH.replace(tzinfo=None)
_MICROSECOND = timedelta(microseconds=1)


def iso(time: int) -> str:
    """Write a time, such as `2026-11-15T20:55:00.000000Z`."""
    # Without a zone, so that none is written.
    return (_EPOCH_PLAIN + timedelta(microseconds=time)).isoformat(timespec="microseconds") + "Z"


def iso_or_none(time: int | None) -> str | None:
    """Write a time that may not be there; 0 is how records say so."""
    return iso(time) if time else None


def microseconds(moment: datetime) -> int:
    """Give the microseconds since 1970 of a time with a zone."""
    return (moment - _EPOCH) // _MICROSECOND


def seconds(length: int) -> float:
    """Give a duration in seconds."""
    return length / SECOND
