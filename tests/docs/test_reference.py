"""The tables of the reference pages say what the code says: no setting, key or call too many or too few."""

import re

from pydantic import BaseModel

from maitred import duration
from maitred.config import (
    BackoffConfig,
    ClassConfig,
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
from maitred.http import create_app
from maitred.service.desk import Desk
from maitred.store.memory import MemoryStores
from maitred.store.valkey.keys import AUDIT, KEYS, NAMES, QUEUES
from tests.docs.pages import ROOT, rows

DOCS = ROOT / "docs"
NO_DURATION = {
    "order",
    "eager",
    "attempts",
    "max_body",
    "max_connections",
    "max_header",
    "cors",
    "output",
    "artifacts",
    "total",
    "per_submitter",
    "url",
    "durability",
    "processes",
    "open_files",
    "network",
    "private_addresses",
    "isolate",
}
SIZES = {"memory", "file_size", "disk"}


def defaults() -> dict[str, str]:
    """Give each setting as the file names it, and its default as a person writes it."""
    tables: dict[str, type[BaseModel]] = {
        "": QueueConfig,
        "store.": StoreConfig,
        "log.": LogConfig,
        "delay.": DelayConfig,
        "backoff.": BackoffConfig,
        "max_waiting.": MaxWaitingConfig,
        "classes.NAME.": ClassConfig,
        "interactive.": InteractiveConfig,
        "sandbox.": SandboxConfig,
        "server.": ServerConfig,
        "worker.": WorkerConfig,
    }
    found = {}
    for prefix, table in tables.items():
        for name, field in table.model_fields.items():
            if f"{name}." in tables or name == "classes":
                continue
            value = field.default
            if field.is_required():
                found[prefix + name] = "required"
            elif value is None:
                found[prefix + name] = "none"
            elif name in SIZES:
                found[prefix + name] = f"{value >> 20}MiB"
            elif isinstance(value, int) and name not in NO_DURATION:
                found[prefix + name] = duration.show(value)
            elif isinstance(value, tuple):
                found[prefix + name] = ", ".join(value) or "none"
            else:
                found[prefix + name] = str(value).lower() if isinstance(value, bool) else str(value)
    return found


def test_every_setting_is_described_with_its_default() -> None:
    described = {
        row[0].strip("`"): row[1].strip('`"') for row in rows(DOCS / "settings.md") if row[0].startswith("`")
    }
    named = {name: default for name, default in described.items() if not name.startswith("MAITRED_")}
    assert named == defaults()


def test_every_key_of_the_store_is_described() -> None:
    described = {row[0].strip("`") for row in rows(DOCS / "internals.md") if row[0].startswith("`")}
    prefixes = {re.split(r"[<]", name)[0] for name in described if not name.startswith("maitred:")}
    assert prefixes == set(NAMES.values())
    assert {QUEUES, KEYS, AUDIT} <= described


def test_every_call_is_described_and_no_other() -> None:
    app = create_app(Desk(MemoryStores()), hosts=["x"])
    there = {
        f"{method.upper()} {path}" for path, methods in app.openapi()["paths"].items() for method in methods
    }
    described = re.findall(r"^### `(\w+ \S+)`$", (DOCS / "http.md").read_text(), re.MULTILINE)
    assert sorted(described) == sorted(there)
