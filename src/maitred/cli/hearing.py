"""The commands that give what a job said and made: output, artifact."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from maitred.cli import options
from maitred.cli.calling import ask
from maitred.cli.exits import expected
from maitred.cli.printing import print_json
from maitred.client import Client
from maitred.errors import ConfigError
from maitred.wire import OutputDocument, OutputPiece

commands = typer.Typer()

Version = Annotated[int | None, typer.Option("--version", min=1, help="An older version.")]
# What is for people to read; the others are for programs.
TEXT = ("stdout", "stderr", "log", "tty")


@commands.command()
@expected
def output(
    id: options.JobId,
    *,
    queue: options.Queue = options.DEFAULT_QUEUE,
    stream: Annotated[
        str | None, typer.Option("--stream", help="One stream only, such as stdout or stderr.")
    ] = None,
    version: Version = None,
    server: options.Server = None,
    data: options.Data = options.DEFAULT_DATA,
    as_json: options.Json = False,
) -> None:
    """Print what a job said, as far as it is kept."""

    async def everything(client: Client) -> OutputDocument:
        said = page = await client.output(queue, id, version, stream=stream)
        while page.items:
            page = await client.output(queue, id, version, stream=stream, begin=page.next)
            said = page.model_copy(update={"items": said.items + page.items})
        return said

    said = ask(server, data, everything)
    if as_json:
        print_json(said)
        return
    typer.echo(_text([piece for piece in said.items if stream or piece.stream in TEXT]), nl=False)


def _text(pieces: list[OutputPiece]) -> str:
    """Put pieces together, as they are for a file; on a screen they must not move the cursor."""
    text = ""
    for piece in pieces:
        if piece.cut:
            text += "\n" if text and not text.endswith("\n") else ""
            text += f"[{piece.cut} bytes cut]\n"
        text += piece.text
    if not sys.stdout.isatty():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else "�" for c in text)


@commands.command()
@expected
def artifact(
    id: options.JobId,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The file's name, as `show --json` has it.")],
    *,
    queue: options.Queue = options.DEFAULT_QUEUE,
    file: Annotated[Path | None, typer.Option("--output", "-o", help="Where to; else it is printed.")] = None,
    version: Version = None,
    server: options.Server = None,
    data: options.Data = options.DEFAULT_DATA,
) -> None:
    """Get a file that a job made."""
    content = ask(server, data, lambda client: client.artifact(queue, id, name, version))
    if file is None:
        typer.echo(content, nl=False)
        return
    try:
        file.write_bytes(content)
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {error.strerror}.") from error
