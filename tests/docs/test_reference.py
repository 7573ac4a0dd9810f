"""The tables of the reference pages say what the code says: no setting, key or call too many or too few."""

import re

from maitred.http import create_app
from maitred.service.desk import Desk
from maitred.store.memory import MemoryStores
from maitred.store.valkey.keys import AUDIT, KEYS, NAMES, QUEUES
from tests.docs.pages import ROOT, rows
from tools.pages.settings import defaults

DOCS = ROOT / "docs"


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
