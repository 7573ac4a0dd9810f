"""How a command ends: one sentence on the error output, and a code that says what kind of failure it was."""

import contextlib
import functools
import os
import sys
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import typer

from maitred.errors import ConfigError, Conflict, InvalidJob, MaitredError, NotFound, ServerUnreachable

CODES: tuple[tuple[type[MaitredError], int], ...] = (
    (ConfigError, 2),
    (ServerUnreachable, 3),
    (NotFound, 4),
    (Conflict, 5),
    (MaitredError, 1),
)

# As a shell has it for programs that a signal ended: SIGINT, SIGPIPE.
INTERRUPTED = 130
NOBODY_READS = 141

HELP = (
    "For example:\n\n$ maitred up\n\n$ maitred submit --wait -- echo hello\n\n$ maitred line --json\n\n"
    "Each command's --help has more.\n\n"
    "Exit codes: 0 done · 1 refused or failed · 2 used wrongly, or wrong settings · 3 no server answers · "
    "4 not found · 5 the state of the job forbids it. With watch and submit --wait, those of "
    "the job: 0 completed, its program's own status, or 1; with batch watch, 0 if it completed, else 1; "
    "130 after Ctrl-C; 141 if nobody reads what is printed."
)

P = ParamSpec("P")
T = TypeVar("T")


def expected(command: Callable[P, T]) -> Callable[P, T]:
    """Let a command end in a sentence for whatever Maitred foresees; only bugs show a traceback."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return command(*args, **kwargs)
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            _say_no_more()
            raise typer.Exit(NOBODY_READS) from None
        except MaitredError as error:
            typer.echo(f"maitred: {sentence_of(error)}", err=True)
            raise typer.Exit(next(code for kind, code in CODES if isinstance(error, kind))) from None

    return run


def sentence_of(error: MaitredError) -> str:
    """Say what went wrong, with each fault."""
    if isinstance(error, InvalidJob):
        return "refused: " + "; ".join(f"{fault.path} {fault.message}".strip() for fault in error.faults)
    return str(error)


def _say_no_more() -> None:
    """Let what is still to be printed go nowhere: whoever read it has left."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
