"""Logs: what the house writes on its error output while it is open.

A traceback is shown as Python shows it, without the values of variables: those are what jobs were sent, and
the tokens of their leases.
"""

from typing import TextIO

import structlog


def write_logs(output: TextIO) -> None:
    """Let everything that is logged go to `output`, a line for each event."""
    console = structlog.dev.ConsoleRenderer(
        colors=output.isatty(), exception_formatter=structlog.dev.plain_traceback
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.StackInfoRenderer(),
            structlog.dev.set_exc_info,
            structlog.processors.TimeStamper(fmt="%Y-%m-%d %H:%M:%S", utc=True),
            console,
        ],
        logger_factory=structlog.PrintLoggerFactory(output),
    )
