"""The command line as the program has it: every command with its help, its arguments and its options."""

import re
from collections.abc import Iterator

import typer
from typer.core import TyperArgument, TyperGroup, TyperOption

from maitred.cli.app import app

# What every command has.
_EVERYWHERE = "--help"


def page() -> str:
    """Write the page."""
    root = typer.main.get_command(app)
    lines = [
        "# Command line\n",
        "Every command, written from the program when this site is built; `--help` says the same.\n",
        *_told(typer.Context(root, info_name="maitred"), 1),
    ]
    return "\n".join(lines)


def _told(context: typer.Context, depth: int) -> Iterator[str]:
    command = context.command
    if depth > 1:
        yield f"\n{'#' * min(depth, 4)} `{context.command_path}`\n"
    yield _text(command.help or "")
    if not isinstance(command, TyperGroup):
        usage = " ".join(command.collect_usage_pieces(context))
        yield f"\n```\n{context.command_path} {usage}\n```\n"
    yield from _parameters(context)
    if command.epilog:
        yield f"\n{_text(command.epilog)}\n"
    if isinstance(command, TyperGroup):
        for name, each in command.commands.items():
            if not each.hidden:
                yield from _told(typer.Context(each, parent=context, info_name=name), depth + 1)


def _parameters(context: typer.Context) -> Iterator[str]:
    rows = [_row(each, context) for each in context.command.params if _EVERYWHERE not in each.opts]
    shown = [row for row in rows if row]
    if shown:
        yield "\n| | meaning |\n|---|---|"
        yield from shown
        yield ""


def _row(parameter: object, context: typer.Context) -> str | None:
    if isinstance(parameter, TyperArgument | TyperOption) and not parameter.hidden:
        names, meaning = parameter.get_help_record(context) or ("", "")
        return f"| `{names}` | {_cell(meaning)} |"
    return None


def _cell(text: str | None) -> str:
    return re.sub(r"\s+", " ", text or "").replace("|", "\\|").strip()


def _text(text: str) -> str:
    """Write help as a page has it: what is indented there is an example."""
    paragraphs = re.split(r"\n\s*\n", text.replace("\b\n", "").strip("\n"))
    written = []
    for paragraph in paragraphs:
        lines = paragraph.splitlines()
        example = lines and all(line.startswith(("  ", "$ ", "maitred ")) for line in lines)
        written.append(
            "```\n" + "\n".join(line.strip() for line in lines) + "\n```" if example else paragraph
        )
    # Examples that follow each other are one block.
    return "\n\n".join(written).replace("\n```\n\n```\n", "\n")
