"""The command that lets a shell complete what is typed."""

import os
from enum import StrEnum
from typing import Annotated

import typer

from maitred.cli.command import Commands

PROGRAM = "maitred"
# The shell asks by it: what is to be offered is printed instead of a command run.
VARIABLE = "_MAITRED_COMPLETE"

commands = Commands("Running it")


class Shell(StrEnum):
    """The shells that can be taught."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


@commands.add(
    "source <(maitred completion bash)",
    "maitred completion zsh > ~/.zfunc/_maitred",
    "maitred completion fish > ~/.config/fish/completions/maitred.fish",
)
def completion(shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")]) -> None:
    """Print what teaches a shell to complete commands, options and the names of queues.

    For bash put the first example into ~/.bashrc; for zsh the directory must be in `fpath` before `compinit`.
    """
    from typer.completion import get_completion_script  # type: ignore[attr-defined]  # noqa: PLC0415

    typer.echo(get_completion_script(prog_name=PROGRAM, complete_var=VARIABLE, shell=shell))


def ready_to_complete() -> None:
    """Let typer answer the shell's questions, if this is one."""
    if VARIABLE in os.environ:
        from typer.completion import completion_init  # type: ignore[attr-defined]  # noqa: PLC0415

        completion_init()
