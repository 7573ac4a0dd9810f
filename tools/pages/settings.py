"""The settings as the code has them: each key with its variable, its default, and what is allowed."""

import re
from collections.abc import Iterator

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from maitred import config, duration

# Where each table stands in the file; the queue's own has no prefix, as on the page of settings.
TABLES: dict[str, type[BaseModel]] = {
    "": config.QueueConfig,
    "delay.": config.DelayConfig,
    "backoff.": config.BackoffConfig,
    "max_waiting.": config.MaxWaitingConfig,
    "classes.NAME.": config.ClassConfig,
    "interactive.": config.InteractiveConfig,
    "sandbox.": config.SandboxConfig,
    "store.": config.StoreConfig,
    "server.": config.ServerConfig,
    "worker.": config.WorkerConfig,
    "log.": config.LogConfig,
}
OF_THE_HOST = ("store.", "server.", "worker.", "log.")
# What no key allows; the refusals say what is allowed instead.
_WRONG = ("999999999d", "9999999TiB", 10**30, "?", "-")
_INTRODUCTION = """\
# All settings

Every key of `maitred.toml`, written from the code when this site is built. [Settings](../settings.md) says
what each is for.
"""
_TITLES = {"": "A queue", "classes.NAME.": "A class of a queue"}


def fields() -> Iterator[tuple[str, str, type[BaseModel], FieldInfo]]:
    """Give each setting: its table's prefix, its key, the table and the field."""
    for prefix, table in TABLES.items():
        for name, field in table.model_fields.items():
            if f"{name}." not in TABLES and name != "classes":
                yield prefix, name, table, field


def defaults() -> dict[str, str]:
    """Give each setting as the file names it, and its default as a person writes it."""
    return {prefix + name: _default(field, allowed(table, name)) for prefix, name, table, field in fields()}


def _default(field: FieldInfo, allowed: str) -> str:
    value = field.default
    if field.is_required():
        return "required"
    if value is None or value == ():
        return "none"
    if isinstance(value, tuple):
        return ", ".join(value)
    if isinstance(value, bool):
        return str(value).lower()
    if re.match(r"[0-9]+[KMGT]?i?B to ", allowed):
        return f"{value >> 20}MiB" if value % (1 << 20) == 0 else f"{value >> 10}KiB"
    return duration.show(value) if re.match(r"[0-9]+(ms|[smhd]) to ", allowed) else str(value)


def allowed(table: type[BaseModel], name: str) -> str:
    """Ask the code what it allows: it says so when it refuses."""
    for wrong in _WRONG:
        try:
            table.model_validate({name: wrong})
        except ValidationError as refused:
            says = next((error["msg"] for error in refused.errors() if error["loc"][:1] == (name,)), "")
            if found := re.search(r"allowed (?:is|are) (.*)", says):
                return found[1]
            if found := re.search(r"Input should be ('.*)", says):
                return found[1].replace("'", "`")
            if "boolean" in says:
                return "`true` or `false`"
    return "text"


def page() -> str:
    """Write the page."""
    lines = [_INTRODUCTION]
    shown = None
    for prefix, name, table, field in fields():
        if prefix != shown:
            shown = prefix
            lines += [
                f"\n## {_TITLES.get(prefix, f'`{_path(prefix)[:-1]}`')}\n",
                (table.__doc__ or "").partition(".")[0] + ".",
            ]
            lines += ["\n| key | default | allowed |", "|---|---|---|"]
        says = allowed(table, name)
        lines.append(f"| `{_path(prefix)}{name}` | `{_default(field, says)}` | {says} |")
    lines.append(
        "\nEach can come from the environment too: `MAITRED_`, then the key in capitals with two underscores "
        "for a dot, as `MAITRED_QUEUES__GRADING__LEASE`.\n"
    )
    return "\n".join(lines)


def _path(prefix: str) -> str:
    return (
        prefix if prefix in OF_THE_HOST else f"queues.NAME.{prefix}".replace("classes.NAME", "classes.CLASS")
    )
