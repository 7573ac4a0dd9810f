"""What is given on the command line, read into what is sent: durations, submitters, values by name, files."""

import getpass
import json
import sys
import tomllib
from base64 import b64encode
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from maitred.duration import parse as parse_duration
from maitred.errors import ConfigError

INPUT = "-"
STDIN = "stdin"
# The most that a queue can be set to take.
MOST_BYTES = 64 << 20


def seconds(option: str, text: str) -> float:
    """Read a duration, such as 5s; `ConfigError` names the option."""
    try:
        return parse_duration(text) / 1_000_000
    except ValueError as error:
        raise ConfigError(f"{option}: {error}.") from error


def submitter_of(option: str, text: str | None) -> dict[str, str]:
    """Read user:ID or team:ID; None is whoever types this."""
    if text is None:
        return {"type": "user", "id": getpass.getuser()}
    kind, colon, name = text.partition(":")
    if not colon:
        raise ConfigError(f"{option} takes user:ID or team:ID, not {text!r}.")
    return {"type": kind, "id": name}


def pair(text: str) -> tuple[str, Any]:
    """Read an argument, name=value; the value is JSON, or else text."""
    name, value = named("--arg", text)
    try:
        decoded = json.loads(value)
        json.dumps(decoded, allow_nan=False)
    except (ValueError, RecursionError):
        # What only Python takes for JSON, such as NaN, is text.
        return name, value
    return name, decoded


def named(option: str, text: str) -> tuple[str, str]:
    """Read name=value; `ConfigError` names the option."""
    name, equals, value = text.partition("=")
    if not equals:
        raise ConfigError(f"{option} takes name=value, not {text!r}.")
    return name, value


def files_beside(given: Iterable[str]) -> dict[str, dict[str, str]]:
    """Read what is to lie beside a program: files, directories with all in them, and the input.

    Each is `PATH`, or `NAME=PATH` to lie there under another name; `-` is the input. `ConfigError` if one
    cannot be read, two have one name, or all are more than any server takes.
    """
    files: dict[str, dict[str, str]] = {}
    left = MOST_BYTES
    for text in given:
        for name, path in _laid_out(text):
            if name in files:
                raise ConfigError(f"--file: two files would lie there as {name!r}.")
            content = _content(path, left)
            left -= len(content)
            files[name] = inline(content)
    return files


def _laid_out(text: str) -> Iterator[tuple[str, str]]:
    """Give the files that one --file means, each with the name under which it is to lie there."""
    name, equals, file = text.partition("=")
    if not equals or Path(text).exists():
        name, file = "", text
    path = Path(file)
    if file == INPUT or not path.is_dir():
        yield name or (STDIN if file == INPUT else path.name), file
        return
    top = name or path.resolve().name
    for found in sorted(path.rglob("*")):
        if not found.is_dir():
            if not found.is_file():
                raise ConfigError(f"--file: {found} is no file that can be sent.")
            yield f"{top}/{found.relative_to(path).as_posix()}", str(found)


def _content(file: str, most: int) -> bytes:
    """Read a file, or the input; no more of it than is needed to see that it is too large."""
    try:
        if file == INPUT:
            content = sys.stdin.buffer.read(most + 1)
        else:
            with Path(file).open("rb") as laid:
                content = laid.read(most + 1)
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}.") from error
    if len(content) > most:
        raise ConfigError(
            f"--file: with {file} there are more than {MOST_BYTES >> 20} MiB, which no queue takes; "
            "let the program fetch it, or name it by url and sha256 in a script's files."
        )
    return content


def inline(content: bytes) -> dict[str, str]:
    """Give a file's content as JSON says it: as text, or in base64."""
    try:
        return {"text": content.decode()}
    except UnicodeDecodeError:
        return {"base64": b64encode(content).decode()}


def batch_payload(file: str | None, *, jobs: bool) -> dict[str, Any]:
    """Give what a batch is made of: a manifest's text, its address, bodies of jobs, or nothing yet."""
    if file is None:
        return {}
    if jobs:
        return {"jobs": job_bodies(file)}
    if file.lower().startswith(("http://", "https://")):
        return {"payload_filename": file}
    return {"payload": _text(file), "payload_filename": None if file == INPUT else Path(file).name}


def job_bodies(file: str) -> list[dict[str, Any]]:
    """Read bodies of jobs, a JSON list or one object on each line; `ConfigError` says which line is none."""
    text = _text(file)
    if text.lstrip().startswith("["):
        return [_object(body, f"item {number} of {file}") for number, body in enumerate(_json(text, file), 1)]
    lines = ((line, f"line {number} of {file}") for number, line in enumerate(text.splitlines(), 1))
    return [_object(_json(line, where), where) for line, where in lines if line.strip()]


def _object(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ConfigError(f"{where} is no job: it must be a JSON object.")
    return value


def script_run(file: str) -> dict[str, Any]:
    """Read a script: a list of steps, or an object that has them as `script`, with `files` if it likes."""
    text = _text(file)
    try:
        read = tomllib.loads(text) if file.endswith(".toml") else _json(text, file)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file} is not TOML: {error}.") from error
    if isinstance(read, list):
        return {"script": read}
    if not isinstance(read, dict) or "script" not in read or not isinstance(read.get("files", {}), dict):
        raise ConfigError(f'{file} is no script: it must be a list of steps, or an object with "script".')
    return read


def _json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{where} is not JSON: {error}.") from error


def _text(file: str) -> str:
    try:
        content = sys.stdin.buffer.read() if file == INPUT else Path(file).read_bytes()
        return content.decode()
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file} is not text in UTF-8.") from error
