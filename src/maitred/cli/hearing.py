"""The commands that give what a job said and made, and who was told of it: output, artifact, deliveries."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from maitred.cli import options
from maitred.cli.asking import ID
from maitred.cli.calling import InQueue
from maitred.cli.command import Commands
from maitred.cli.given import inline
from maitred.cli.printing import clock, print_page
from maitred.client import Client
from maitred.errors import ConfigError
from maitred.wire import DeliveryDocument, OutputDocument, OutputPiece, Page

commands = Commands("Jobs")

# What is for people to read; the others are for programs.
TEXT = ("stdout", "stderr", "log", "tty")


@commands.add(f"maitred output {ID}", f"maitred output {ID} --stream stderr | tail -5")
def output(
    where: InQueue,
    id: options.JobId,
    *,
    stream: Annotated[
        str | None, typer.Option("--stream", help="One stream only, such as stdout or stderr.")
    ] = None,
    version: options.Version = None,
) -> None:
    """Print what a job said, as far as it is kept; `maitred watch` prints it while it comes."""

    async def everything(client: Client) -> OutputDocument:
        said = page = await client.output(where.queue, id, version, stream=stream)
        while page.items:
            page = await client.output(where.queue, id, version, stream=stream, begin=page.next)
            said = page.model_copy(update={"items": said.items + page.items})
        return said

    def show(said: OutputDocument) -> None:
        typer.echo(_text([piece for piece in said.items if stream or piece.stream in TEXT]), nl=False)

    where.tell(everything, show)


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


@commands.add(f"maitred artifact {ID} report.pdf -o report.pdf", f"maitred artifact {ID} sum.txt | wc -c")
def artifact(
    where: InQueue,
    id: options.JobId,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The file's name, as `show` has it.")],
    *,
    file: Annotated[Path | None, typer.Option("--output", "-o", help="Where to; else it is printed.")] = None,
    version: options.Version = None,
) -> None:
    """Get a file that a job made. With --json it is told as text, or in base64 if it is none."""
    content = where.ask(lambda client: client.artifact(where.queue, id, name, version))
    if file is None:
        document = {"name": name, "size": len(content), **inline(content)}
        where.print(document, lambda _: typer.echo(content, nl=False))
        return
    try:
        file.write_bytes(content)
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {error.strerror}.") from error
    where.print({"name": name, "size": len(content), "file": str(file)}, lambda _: None)


@commands.add(f"maitred deliveries {ID}")
def deliveries(where: InQueue, id: options.JobId, *, version: options.Version = None) -> None:
    """Show each try to tell a job's response address of it, and what was answered."""
    where.tell(lambda client: client.deliveries(where.queue, id, version), _print_deliveries)


def _print_deliveries(page: Page[DeliveryDocument]) -> None:
    def cells(each: DeliveryDocument) -> list[object]:
        return [clock(each.at), each.type, each.attempt, each.answer, each.said, clock(each.next_at) or ""]

    print_page(page, ("at", "message", "try", "answer", "said", "again"), cells, "Nothing was sent yet.")
