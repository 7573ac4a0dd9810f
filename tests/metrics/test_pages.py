"""The page and the dashboard name the metrics that there are, and no others."""

import json
import re
from typing import Any

import pytest

from maitred.service.metrics import codes
from tests.docs.pages import ROOT, rows
from tests.metrics.conftest import Counted
from tests.metrics.readings import names

DASHBOARD = ROOT / "deploy" / "grafana" / "maitred.json"
NAME = re.compile(r"maitred_[a-z_]+")


@pytest.fixture
def kind() -> str:
    """Override: all stores have the same metrics."""
    return "memory"


def queries(found: Any) -> list[str]:
    """Give all queries of a dashboard, wherever they stand in it."""
    if isinstance(found, list):
        return [query for each in found for query in queries(each)]
    if not isinstance(found, dict):
        return []
    own = [found[key] for key in ("expr", "definition") if isinstance(found.get(key), str)]
    return own + [query for each in found.values() for query in queries(each)]


async def test_every_metric_of_the_dashboard_exists_and_each_is_shown(counted: Counted) -> None:
    there = {name for name in names(await counted.reads.text()) if name.startswith("maitred_")}
    asked = queries(json.loads(DASHBOARD.read_text()))
    named = {name for query in asked for name in NAME.findall(query)}
    assert named <= there, named - there
    families = {re.sub("_(bucket|count|sum)$", "", name) for name in there}
    shown = {re.sub("_(bucket|count|sum)$", "", name) for name in named}
    assert families - shown == {"maitred_space_bytes", "maitred_space_used_bytes"}


def test_the_panels_of_the_dashboard_are_told_apart_and_do_not_overlap() -> None:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken = [
        (x, y)
        for panel in panels
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(set(taken)) == len(taken)
    assert max(x for x, _ in taken) < 24


async def test_every_metric_is_described_and_no_other(counted: Counted) -> None:
    text = await counted.reads.text()
    kinds = dict(re.findall(r"^# TYPE (maitred_\S+) (\w+)$", text, re.MULTILINE))
    page = ROOT / "docs" / "metrics.md"
    described = {row[0].strip("`"): row[1] for row in rows(page) if row[0].startswith("`maitred_")}
    assert described == kinds


async def test_queries_on_the_page_name_metrics_that_there_are(counted: Counted) -> None:
    there = names(await counted.reads.text())
    page = (ROOT / "docs" / "metrics.md").read_text()
    asked = {
        name
        for query in re.findall(r"\| `([^`]*(?:rate|max|increase)[^`]*)` \|", page)
        for name in NAME.findall(query)
    }
    assert asked
    assert asked <= there, asked - there


async def test_labels_are_bounded(counted: Counted) -> None:
    assert codes.label_of("") == "completed"
    assert codes.label_of("cut") == "cut"
    assert codes.label_of("anything else") == "other"
    for number in range(20):
        await counted.guest.asks("GET", f"made up {number}")
        await counted.reads.http.request(f"MADE{number}", "/healthz")
    text = await counted.reads.text()
    assert "made up" not in text
    assert "MADE" not in text
