"""Logs: what the house writes on its error output while it is open, for people or for programs.

A traceback is shown as Python shows it, without the values of variables: those are what jobs were sent, and
the tokens of their leases. A line about a job has its `job` and `queue`, and while it runs its `lease`, which
is its record and attempt.
"""

import contextlib
from collections.abc import Iterator
from os import environ
from typing import TextIO

import structlog
from structlog.types import Processor

from maitred.worker.context import name_job


@contextlib.contextmanager
def logging_to(output: TextIO) -> Iterator[None]:
    """Let logs go to `output` for a while, for people."""
    before = structlog.get_config()
    write_logs(output)
    try:
        yield
    finally:
        structlog.configure(**before)


def write_logs(output: TextIO, form: str = "text") -> None:
    """Let everything that is logged go to `output`, a line for each event, as `text` or `json`."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            name_job,
            structlog.processors.add_log_level,
            structlog.processors.StackInfoRenderer(),
            structlog.dev.set_exc_info,
            *(_for_programs() if form == "json" else _for_people(output)),
        ],
        logger_factory=structlog.PrintLoggerFactory(output),
    )


def _for_people(output: TextIO) -> list[Processor]:
    return [
        structlog.processors.TimeStamper(fmt="%Y-%m-%d %H:%M:%S", utc=True),
        structlog.dev.ConsoleRenderer(
            colors=output.isatty() and not environ.get("NO_COLOR"),
            exception_formatter=structlog.dev.plain_traceback,
        ),
    ]


def _for_programs() -> list[Processor]:
    return [
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        structlog.processors.JSONRenderer(),
    ]
