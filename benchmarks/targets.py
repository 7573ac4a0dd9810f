"""What Maitred must show beside its peers, and whether this run showed it.

Each target is a sentence, a bound and the number that is held against it, with the least and the greatest
of the rounds beside it: a verdict whose bound lies between them is not yet to be trusted. Where a figure
was not taken, by choice or because it failed, the target is open rather than short.
"""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from benchmarks.figures.cycle import overtaking
from benchmarks.figures.foresee import LENGTH
from benchmarks.figures.server_time import key
from benchmarks.figures.stages import key as stage_key
from benchmarks.results import Results, Spread, quotient
from benchmarks.words import TIMES, spaced

Verdict = Literal["reached", "short", "not measured"]
SUBJECT = "maitred"
CLASSES = "classes"
_PEERS = ("dramatiq", "huey", "bullmq")


@dataclass(frozen=True)
class Target:
    """A bound, and the number that this run has for it."""

    what: str
    bound: float | None
    measured: float | None
    at_least: bool
    unit: str = ""
    spread: Spread | None = None

    @property
    def verdict(self) -> Verdict:
        if self.bound is None or self.measured is None:
            return "not measured"
        held = self.measured >= self.bound if self.at_least else self.measured <= self.bound
        return "reached" if held else "short"

    def as_json(self) -> dict[str, Any]:
        return {**dataclasses.asdict(self), "verdict": self.verdict}


def targets(results: Results) -> list[Target]:
    """Hold a run against every target."""
    return [
        *_throughput(results),
        *_floor(results),
        *_latency(results),
        *_server_time(results),
        *_stages(results),
        *_cost(results),
        *_ledger(results),
        *_http(results),
    ]


def _throughput(results: Results) -> Iterator[Target]:
    for peer, times in (("bullmq", 2.0), ("dramatiq", 8.0)):
        ratio = results.ratio(SUBJECT, peer, "drain", "jobs_per_s")
        spread = results.spread(SUBJECT, "drain", "jobs_per_s", over=peer)
        yield Target(f"drain ÷ {peer}", times, ratio, at_least=True, unit=TIMES, spread=spread)
    best = max(_PEERS, key=lambda peer: results.median(peer, "bulk", "jobs_per_s") or 0.0)
    ratio = results.ratio(SUBJECT, best, "bulk", "jobs_per_s")
    spread = results.spread(SUBJECT, "bulk", "jobs_per_s", over=best)
    yield Target("bulk enqueue ÷ the best peer's", 5.0, ratio, at_least=True, unit=TIMES, spread=spread)
    ratio = results.ratio(SUBJECT, "dramatiq", "single", "jobs_per_s")
    spread = results.spread(SUBJECT, "single", "jobs_per_s", over="dramatiq")
    yield Target("single enqueue ÷ dramatiq", 1.2, ratio, at_least=True, unit=TIMES, spread=spread)


def _floor(results: Results) -> Iterator[Target]:
    """Hold the Floor against the same queue without classes, and long lines against short ones."""
    ratio = results.ratio(CLASSES, SUBJECT, "drain", "jobs_per_s")
    spread = results.spread(CLASSES, "drain", "jobs_per_s", over=SUBJECT)
    yield Target("drain, three classes ÷ one", 0.9, ratio, at_least=True, unit=TIMES, spread=spread)
    few, many = 1_000, 1_000_000
    growth = quotient(
        results.median(CLASSES, "cycle", overtaking(many)), results.median(CLASSES, "cycle", overtaking(few))
    )
    words = f"server time of a fast job that passes slow ones: {spaced(many)} ÷ {spaced(few)} waiting"
    yield Target(words, 1.2, growth, at_least=False, unit=TIMES)
    whole = results.median(SUBJECT, "plan", "pass_100000_s")
    yield Target("estimates: a full pass over 100 000 waiting jobs", 0.15, whole, at_least=False, unit=" s")
    one = results.median(SUBJECT, "plan", "append_100000_us")
    yield Target("estimates: appending one job", 50.0, one, at_least=False, unit=" µs")
    first = results.median(SUBJECT, "foresee", f"submit_p99_{LENGTH}_ms")
    words = "submit and first estimate p99, 100 000 waiting"
    yield Target(words, 20.0, first, at_least=False, unit=" ms")
    head = results.median(SUBJECT, "foresee", f"head_max_{LENGTH}_ms")
    words = "estimate of the head after it moved, 100 000 waiting"
    yield Target(words, 250.0, head, at_least=False, unit=" ms")


def _latency(results: Results) -> Iterator[Target]:
    """No queue is asked to beat the bare hand-off: where that lies above the bound, it is the bound."""
    for number, share, words in (
        ("p50_ms", 0.5, "start latency p50: half of huey's"),
        ("p99_ms", 1.0, "start latency p99: huey's"),
    ):
        huey, bare = (results.median(system, "latency", number) for system in ("huey", "bare"))
        bound = None if huey is None else max(share * huey, bare or 0.0)
        measured = results.median(SUBJECT, "latency", number)
        spread = results.spread(SUBJECT, "latency", number)
        yield Target(words, bound, measured, at_least=False, unit=" ms", spread=spread)


def _server_time(results: Results) -> Iterator[Target]:
    # The bound is about these two lengths; a quick run, which has no such line, leaves it open.
    few, many = 4_000, 1_000_000
    for per_call, times in ((1, 1.2), (64, 2.0)):
        way = "call by call" if per_call == 1 else f"{per_call} per call"
        for verb in ("submit", "start"):
            growth = quotient(
                results.median(SUBJECT, "server", key(verb, many, per_call)),
                results.median(SUBJECT, "server", key(verb, few, per_call)),
            )
            words = f"server time per {verb}, {way}: {spaced(many)} ÷ {spaced(few)} waiting"
            yield Target(words, times, growth, at_least=False, unit=TIMES)


def _stages(results: Results) -> Iterator[Target]:
    """Hold the end of a stage against a job's end and another one's start, in the same kind of queue."""
    for per_call in (1, 64):
        ratio = quotient(
            results.median(SUBJECT, "stages", stage_key("stage", per_call)),
            results.median(SUBJECT, "stages", stage_key("job", per_call)),
        )
        way = "call by call" if per_call == 1 else f"{per_call} per call"
        words = f"server time of a stage that goes on ÷ a job's end and start, {way}"
        yield Target(words, 1.5, ratio, at_least=False, unit=TIMES)


def _cost(results: Results) -> Iterator[Target]:
    commands = results.median(SUBJECT, "idle", "commands_per_s")
    yield Target("an idle worker's commands per second", 2.0, commands, at_least=False)
    cpu = results.median(SUBJECT, "idle", "cpu_percent")
    yield Target("an idle worker's share of a core", 1.0, cpu, at_least=False, unit=" %")
    size = results.median(SUBJECT, "memory", "bytes_per_job")
    kilobytes = None if size is None else size / 1000
    yield Target("memory per waiting job, 1 kB configuration", 2.5, kilobytes, at_least=False, unit=" kB")


def _ledger(results: Results) -> Iterator[Target]:
    ratio = quotient(
        results.median(SUBJECT, "transition", "ledger_per_s"),
        results.median(SUBJECT, "transition", "bare_per_s"),
    )
    words = "a ZooKeeper stage transition ÷ a raw multi of the same operations"
    yield Target(words, 0.8, ratio, at_least=True, unit=TIMES)


def _http(results: Results) -> Iterator[Target]:
    ratio = quotient(
        results.median(SUBJECT, "http", "submit_per_s"), results.median(SUBJECT, "http", "bare_per_s")
    )
    yield Target(
        "HTTP submit ÷ a bare FastAPI endpoint with the same body", 0.5, ratio, at_least=True, unit=TIMES
    )
