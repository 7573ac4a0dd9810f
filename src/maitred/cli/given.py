"""What is given on the command line, read into what is sent: durations, submitters, values by name, files."""

import getpass
import json
import sys
import tomllib
from base64 import b64encode
from pathlib import Path
from typing import Any

from maitred.duration import parse as parse_duration
from maitred.errors import ConfigError

INPUT = "-"


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


def file_beside(path: Path) -> tuple[str, dict[str, str]]:
    """Read a file that is to lie beside a program; `ConfigError` if that is not possible."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.") from error
    try:
        return path.name, {"text": content.decode()}
    except UnicodeDecodeError:
        return path.name, {"base64": b64encode(content).decode()}


def batch_payload(file: str | None, *, jobs: bool) -> dict[str, Any]:
    """Give what a batch is made of: a manifest's text, its address, bodies of jobs, or nothing yet."""
    if file is None:
        return {}
    if jobs:
        return {"jobs": job_bodies(file)}
    if file.lower().startswith(("http://", "https://")):
        return {"payload_filename": file}
    return {"payload": _text(file), "payload_filename": None if file == INPUT else Path(file).name}


def job_bodies(file: str) -> list[Any]:
    """Read bodies of jobs, a JSON list or one object on each line; `ConfigError` says which line is none."""
    text = _text(file)
    if text.lstrip().startswith("["):
        return list(_json(text, file))
    lines = enumerate(text.splitlines(), 1)
    return [_json(line, f"line {number} of {file}") for number, line in lines if line.strip()]


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
