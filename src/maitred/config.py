"""The settings: `maitred.toml` and the environment, checked at start.

The file is found in the working directory or named by the caller. Every value can also come from the
environment, which wins: `MAITRED_STORE__URL` is `store.url`, `MAITRED_QUEUES__GRADING__ORDER` is
`queues.grading.order`. With neither there is one queue, `default`, on the embedded store. A mistake is never
guessed around: all of them are told at once, a line for each, with the key and what is allowed there.
"""

import difflib
import os
import re
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
)
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, SettingsConfigDict, SettingsError

from maitred import duration
from maitred.core.settings import Settings
from maitred.errors import ConfigError

FILE = "maitred.toml"
_SCHEMES = ("valkey", "redis", "valkeys", "rediss", "unix")
_NOT_YET = ("valkey+sentinel", "valkey+cluster", "redis+sentinel", "redis+cluster")
_QUEUE_NOT_YET = ("classes", "elastic", "interactive", "stages", "space", "ledger", "layout")
_QUEUE_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_default = Settings()


def _between(shortest: str, longest: str) -> BeforeValidator:
    low, high = duration.parse(shortest), duration.parse(longest)

    def check(value: object) -> int:
        microseconds = duration.parse(value)
        if not low <= microseconds <= high:
            raise ValueError(f"{value!r} is out of bounds; allowed is {shortest} to {longest}")
        return microseconds

    return BeforeValidator(check)


def _count(low: int, high: int) -> BeforeValidator:
    def check(value: object) -> int:
        number = int(value) if isinstance(value, str) and re.fullmatch(r"-?\d{1,18}", value) else value
        if not isinstance(number, int) or isinstance(number, bool) or not low <= number <= high:
            raise ValueError(f"{value!r} is not allowed; allowed is a whole number from {low} to {high}")
        return number

    return BeforeValidator(check)


def _queue_name(name: str) -> str:
    if not _QUEUE_NAME.fullmatch(name):
        raise ValueError(
            f"{name!r} is not a queue's name; allowed are 1 to 63 of a-z, 0-9, _ and -, "
            "with a letter or digit first"
        )
    return name


class _Table(BaseModel):
    """A table of the file: fixed once read, and without a key that nobody knows."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class StoreConfig(_Table):
    """Where the queues are kept; without a `url`, on the embedded server."""

    url: str | None = None
    durability: Literal["always", "everysec"] = "everysec"

    @field_validator("url")
    @classmethod
    def _usable(cls, url: str | None) -> str | None:
        return None if url is None else _check_url(url)


class DelayConfig(_Table):
    """The delay policy: how long a job waits for each recent submission of the same submitter."""

    per_recent: Annotated[int, _between("0s", "30d")]
    window: Annotated[int, _between("1s", "30d")] = _default.window


class MaxWaitingConfig(_Table):
    """How many jobs may wait: in the whole queue, and of one submitter."""

    total: Annotated[int, _count(1, 100_000_000)] = _default.max_total
    per_submitter: Annotated[int, _count(1, 100_000_000)] = _default.max_per_submitter


class QueueConfig(_Table):
    """One queue's settings. All durations are microseconds once read."""

    order: Literal["newest-first", "oldest-first"] = _default.order
    delay: DelayConfig | None = None
    eager: bool = _default.eager
    time_limit: Annotated[int, _between("100ms", "30d")] = _default.time_limit
    lease: Annotated[int, _between("1s", "1h")] = _default.lease
    attempts: Annotated[int, _count(1, 100)] = _default.attempts
    grace: Annotated[int, _between("0s", "1h")] = _default.grace
    kill_after: Annotated[int, _between("0s", "1m")] = _default.kill_after
    retention: Annotated[int, _between("1s", "3650d")] = _default.retention
    max_delay: Annotated[int, _between("0s", "3650d")] = _default.max_delay
    max_waiting: MaxWaitingConfig = MaxWaitingConfig()
    max_body: Annotated[int, _count(1, 64 << 20)] = _default.max_body

    def settings(self) -> Settings:
        """Give the settings in the form that the rules use."""
        return Settings(
            order=self.order,
            eager=self.eager,
            per_recent=self.delay.per_recent if self.delay else _default.per_recent,
            window=self.delay.window if self.delay else _default.window,
            time_limit=self.time_limit,
            lease=self.lease,
            attempts=self.attempts,
            grace=self.grace,
            kill_after=self.kill_after,
            retention=self.retention,
            max_delay=self.max_delay,
            max_total=self.max_waiting.total,
            max_per_submitter=self.max_waiting.per_submitter,
            max_body=self.max_body,
        )


class Config(_Table):
    """All settings of one installation. There is always at least one queue."""

    store: StoreConfig = StoreConfig()
    queues: dict[Annotated[str, AfterValidator(_queue_name)], QueueConfig] = Field(
        default_factory=dict, validate_default=True
    )

    @field_validator("queues", mode="after")
    @classmethod
    def _at_least_one(cls, queues: dict[str, QueueConfig]) -> dict[str, QueueConfig]:
        return queues or {"default": QueueConfig()}


class _Environment(BaseSettings):
    """What the environment says, as tables of text that `Config` then checks with the rest."""

    model_config = SettingsConfigDict(
        env_prefix="MAITRED_", env_nested_delimiter="__", env_ignore_empty=True, extra="ignore"
    )

    store: dict[str, Any] = {}
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
        return _Environment().model_dump(exclude_unset=True)
    except (ValidationError, SettingsError) as error:
        raise ConfigError(
            "MAITRED_STORE and MAITRED_QUEUES cannot be set as a whole; "
            "name one value, as in MAITRED_STORE__URL."
        ) from error


def _merge(under: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    merged = dict(under)
    for key, value in over.items():
        below = merged.get(key)
        merged[key] = _merge(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return merged


def _check_url(url: str) -> str:
    """Check a store's url without ever repeating it: it may hold a password."""
    allowed = (
        "allowed are valkey://HOST:PORT/DB, redis://HOST:PORT/DB, "
        "valkeys:// and rediss:// over TLS, and unix:///PATH"
    )
    try:
        parts = urlsplit(url)
        port_is_right = parts.port is None or parts.port > 0
    except ValueError as error:
        raise ValueError(f"is not a url ({error}); {allowed}") from error
    if parts.scheme in _NOT_YET:
        raise ValueError(f"{parts.scheme}:// is not supported yet; {allowed}")
    if parts.scheme not in _SCHEMES:
        raise ValueError(f"{parts.scheme or 'no'}:// is not a known scheme; {allowed}")
    complete = bool(parts.path.strip("/")) if parts.scheme == "unix" else bool(parts.hostname)
    if not complete or not port_is_right:
        raise ValueError(f"it does not say where the server is; {allowed}")
    if parts.scheme != "unix" and not re.fullmatch(r"/?\d*", parts.path):
        raise ValueError(f"the database has to be a number; {allowed}")
    return url


def _sentence(mistake: ErrorDetails) -> str:
    """Say in one line which key is wrong and what is allowed there."""
    path = [str(part) for part in mistake["loc"] if part != "[key]"]
    match mistake["type"]:
        case "extra_forbidden" if path[0] == "queues" and path[2:] and path[2] in _QUEUE_NOT_YET:
            says = "it is not supported yet"
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


def _table_at(path: list[str]) -> type[_Table]:
    match path:
        case ["store"]:
            return StoreConfig
        case ["queues", _]:
            return QueueConfig
        case ["queues", _, "delay"]:
            return DelayConfig
        case ["queues", _, "max_waiting"]:
            return MaxWaitingConfig
        case _:
            return Config
