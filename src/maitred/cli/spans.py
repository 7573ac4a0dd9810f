"""Lengths of time as people say them: `0.4 s`, `40 s`, `3 min`, `2 h 5 min`."""

from datetime import timedelta

from maitred.wire import Estimate


def span(length: timedelta | float) -> str:
    """Say a length of time, no more exactly than anybody needs it."""
    seconds = length.total_seconds() if isinstance(length, timedelta) else length
    if seconds < 1:
        return f"{max(0.0, seconds):.1f} s"
    whole = round(seconds)
    if whole < 120:
        return f"{whole} s"
    minutes = round(seconds / 60)
    if minutes < 120:
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {rest} min" if rest else f"{hours} h"
    return f"{round(hours / 24)} days"


def starts(estimate: Estimate | None, passed: float = 0.0) -> str | None:
    """Say when a job is expected to start, `passed` seconds after that was foreseen; None if nobody knows."""
    if estimate is None or estimate.as_of is None or estimate.expected is None:
        return None
    since = estimate.as_of + timedelta(seconds=passed)
    if estimate.expected <= since:
        said = "expected to start any moment"
    else:
        said = f"expected to start in {span(estimate.expected - since)}"
    if estimate.low and estimate.high:
        low, high = span(estimate.low - since), span(estimate.high - since)
        if low != high and estimate.high > since:
            said += f" ({low} to {high})"
    if estimate.at_latest and estimate.at_latest > since:
        said += f", at the latest in {span(estimate.at_latest - since)}"
    return said


def starts_briefly(estimate: Estimate | None) -> str:
    """Say the same in a cell of a table."""
    if estimate is None or estimate.as_of is None or estimate.expected is None:
        return ""
    said = f"in {span(estimate.expected - estimate.as_of)}"
    if estimate.at_latest:
        said += f", at most {span(estimate.at_latest - estimate.as_of)}"
    return said
