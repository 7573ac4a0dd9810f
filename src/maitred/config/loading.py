"""Reading the settings: the file, then the environment over it, and a sentence for every mistake."""

import difflib
import os
import tomllib
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, SettingsConfigDict, SettingsError

from maitred import duration
from maitred.config.tables import (
    BackoffConfig,
    ClassConfig,
    Config,
    DelayConfig,
    InteractiveConfig,
    LogConfig,
    MaxWaitingConfig,
    QueueConfig,
    SandboxConfig,
    ServerConfig,
    StoreConfig,
    WorkerConfig,
)
from maitred.errors import ConfigError

FILE = "maitred.toml"
_SECTIONS: dict[str, type[BaseModel]] = {
    "store": StoreConfig,
    "server": ServerConfig,
    "worker": WorkerConfig,
    "log": LogConfig,
}
_TABLES: dict[str, type[BaseModel]] = {
    "delay": DelayConfig,
    "backoff": BackoffConfig,
    "max_waiting": MaxWaitingConfig,
    "interactive": InteractiveConfig,
    "sandbox": SandboxConfig,
}


class _Environment(BaseSettings):
    """What the environment says, as tables of text that `Config` then checks with the rest."""

    model_config = SettingsConfigDict(
        env_prefix="MAITRED_", env_nested_delimiter="__", env_ignore_empty=True, extra="ignore"
    )

    store: dict[str, Any] = {}
    worker: dict[str, Any] = {}
    log: dict[str, Any] = {}
    queues: dict[str, Any] = {}


def load(path: Path | None = None) -> Config:
    """Read the settings from `path`, or from `maitred.toml` in the working directory, and the environment.

    Raises `ConfigError` if a named file is not there, cannot be read or is not TOML, and for every mistake in
    it or in the environment; the text has a line for each.
    """
    settings = _merge(_read_file(path), _read_environment())
    try:
        return Config.model_validate(settings)
    except ValidationError as mistakes:
        raise ConfigError("\n".join(_sentence(mistake) for mistake in mistakes.errors())) from mistakes


def _read_file(path: Path | None) -> dict[str, Any]:
    file = Path(FILE) if path is None else path
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except FileNotFoundError as error:
        if path is None:
            return {}
        raise ConfigError(f"{file}: there is no such file.") from error
    except OSError as error:
        raise ConfigError(f"{file}: it cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise ConfigError(f"{file}: it is not TOML: {error}.") from error


def _read_environment() -> dict[str, Any]:
    # A variable with a section that does not exist would be passed over in silence.
    sections = [name.lower() for name in Config.model_fields]
    for name in sorted(os.environ):
        section, nested, _ = name.upper().removeprefix("MAITRED_").partition("__")
        if name.upper().startswith("MAITRED_") and nested and section.lower() not in sections:
            raise ConfigError(f"{name}: {_unknown(section.lower(), sections)}")
    try:
        found = _Environment().model_dump(exclude_unset=True)
    except (ValidationError, SettingsError) as error:
        raise ConfigError(
            "MAITRED_STORE, MAITRED_WORKER, MAITRED_LOG and MAITRED_QUEUES cannot be set as a whole; "
            "name one value, as in MAITRED_STORE__URL."
        ) from error
    if server := _server_in_environment():
        found["server"] = server
    for queue in found.get("queues", {}).values():
        if isinstance(queue, dict) and isinstance(classes := queue.get("classes"), dict):
            # Variables have no order, so their classes stand by their caps.
            queue["classes"] = dict(sorted(classes.items(), key=lambda item: _cap(item[1])))
    return found


def _server_in_environment() -> dict[str, str]:
    """Read the table `server` by hand: `MAITRED_SERVER` itself is the program of the embedded store."""
    beginning = "MAITRED_SERVER__"
    return {
        name.upper().removeprefix(beginning).lower(): value
        for name, value in os.environ.items()
        if name.upper().startswith(beginning) and value
    }


def _cap(table: object) -> int:
    try:
        return duration.parse(table.get("cap")) if isinstance(table, dict) else 0
    except ValueError:
        return 0


def _merge(under: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    merged = dict(under)
    for key, value in over.items():
        below = merged.get(key)
        merged[key] = _merge(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return merged


def _sentence(mistake: ErrorDetails) -> str:
    """Say in one line which key is wrong and what is allowed there."""
    path = [str(part) for part in mistake["loc"] if part != "[key]"]
    match mistake["type"]:
        case "extra_forbidden":
            says = _unknown(path[-1], list(_table_at(path[:-1]).model_fields))
        case "missing":
            says = "it is missing, and has no default"
        case "literal_error":
            says = f"{mistake['input']!r} is not allowed; allowed is {mistake['ctx']['expected']}"
        case "bool_type" | "bool_parsing":
            says = f"{mistake['input']!r} is not allowed; allowed is true or false"
        case "model_type" | "model_attributes_type" | "dict_type":
            says = f"{mistake['input']!r} is not allowed; allowed is a table of settings"
        case "string_type":
            says = f"{mistake['input']!r} is not allowed; allowed is text"
        case _:
            says = mistake["msg"].removeprefix("Value error, ")
    return f"{'.'.join(path)}: {says}."


def _unknown(key: str, allowed: list[str]) -> str:
    close = difflib.get_close_matches(key, allowed, n=1)
    guess = f"; did you mean {close[0]}?" if close else "."
    return f"there is no such setting{guess} Allowed are {', '.join(sorted(allowed))}"


def _table_at(path: list[str]) -> type[BaseModel]:
    match path:
        case [name] if name in _SECTIONS:
            return _SECTIONS[name]
        case ["queues", _]:
            return QueueConfig
        case ["queues", _, "classes", _]:
            return ClassConfig
        case ["queues", _, table] if table in _TABLES:
            return _TABLES[table]
        case _:
            return Config
