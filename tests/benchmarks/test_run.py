"""A run: the order of rounds, what happens when something fails, and what is left behind."""

import dataclasses
import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.errors import BenchmarkError, PeerUnavailable
from benchmarks.figures import Figure, Reading
from benchmarks.figures.latency import Latency, percentile
from benchmarks.program import Command
from benchmarks.run import run
from benchmarks.scale import QUICK, Scale
from benchmarks.stand import Stand, Stands, wheel_server
from benchmarks.systems.bare import Bare
from benchmarks.systems.system import System
from benchmarks.targets import targets

PEERS = Path(__file__).resolve().parents[2] / "benchmarks" / "peers"


class Fake(System):
    settings = "none"

    def __init__(self, name: str, *, missing: bool = False) -> None:
        self.name = name
        self._missing = missing

    def prepare(self) -> None:
        if self._missing:
            raise PeerUnavailable(self.name, "it is not here.")

    def version(self) -> str:
        return "1"

    def producer(self, stand: Stand) -> Command:
        raise NotImplementedError

    def worker(self, stand: Stand) -> Command:
        raise NotImplementedError


class Order(Figure):
    """Notes who was measured; fails for those whose name says so."""

    def __init__(self, *, every_round: bool = True) -> None:
        self.name = "order" if every_round else "once"
        self.every_round = every_round
        self.seen: list[str] = []

    def applies_to(self, system: System) -> bool:
        del system
        return True

    def measure(self, system: System, stands: Stands, scale: Scale) -> Reading:
        del stands, scale
        self.seen.append(system.name)
        if system.name == "broken":
            raise BenchmarkError("it broke")
        return {"number": 1.0}

    def words(self, reading: Reading) -> str:
        return str(reading)


@pytest.fixture
def stands() -> Stands:
    return Stands(wheel_server())


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """Give a folder of this test's own whose path leaves room for a socket's name."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)


def test_every_round_begins_with_another_system(stands: Stands) -> None:
    order, once = Order(), Order(every_round=False)
    run([Fake("a"), Fake("b"), Fake("c")], [order, once], stands, QUICK, rounds=3)
    assert "".join(order.seen) == "abcbcacab"
    assert "".join(once.seen) == "abc"


def test_what_fails_is_said_and_the_rest_is_measured(stands: Stands) -> None:
    systems = [Fake("broken"), Fake("absent", missing=True), Fake("sound")]
    results = run(systems, [Order()], stands, QUICK, rounds=1)
    assert list(results.readings) == ["sound"]
    assert results.failures == ["absent cannot be measured here: it is not here.", "broken, order: it broke"]


def test_a_measurement_names_the_server_and_leaves_nothing_behind(
    stands: Stands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, short_folder: Path
) -> None:
    monkeypatch.setattr("benchmarks.stand._short", lambda: str(short_folder))
    scale = dataclasses.replace(QUICK, latency_samples=5)
    results = run([Bare()], [Latency()], stands, scale, rounds=1)
    assert results.failures == []
    results.write(tmp_path / "made" / "results.json", [each.as_json() for each in targets(results)])
    stored = json.loads((tmp_path / "made" / "results.json").read_text())
    assert stored["systems"]["bare"]["figures"]["latency"]["median"]["p50_ms"] > 0
    assert stored["store"]["server"].startswith("Valkey")
    assert stored["store"]["allocator"] != "unknown"
    assert list(short_folder.iterdir()) == []


def test_a_percentile_is_one_of_the_samples() -> None:
    hundred = [float(number) for number in range(1, 101)]
    assert (percentile(hundred, 50), percentile(hundred, 99), percentile([7.0], 99)) == (50.0, 99.0, 7.0)


def test_peers_are_pinned_and_no_registry_is_named() -> None:
    lock = (PEERS / "package-lock.json").read_text()
    assert '"resolved"' not in lock
    for version in json.loads((PEERS / "package.json").read_text())["dependencies"].values():
        assert re.fullmatch(r"\d+\.\d+\.\d+", version)
    for line in (PEERS / "requirements.txt").read_text().splitlines():
        assert line.startswith("#") or "==" in line
