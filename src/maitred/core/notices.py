"""What the submitter of a job is told at its response address: the outbox, and the log of each try.

A job that has such an address gets a notice with each start, each return to the line and its end. They are
told in order: the next one when the one before has arrived or was given up.
"""

from typing import Literal, NamedTuple

NoticeKind = Literal["started", "requeued", "ended"]


class Notice(NamedTuple):
    """Something to be told, as it was at that moment. `number` is unique in the queue and never changes."""

    number: int
    kind: NoticeKind
    at: int
    attempt: int
    stage: int
    worker: str
    code: str
    tries: int = 0


class Delivery(NamedTuple):
    """One try at a notice: when, how it ended (`sent`, `again`, `refused`), and what was answered."""

    number: int
    kind: NoticeKind
    at: int
    tries: int
    answer: Literal["sent", "again", "refused"]
    said: str
    took: int
    again_at: int = 0
