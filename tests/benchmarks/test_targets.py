"""Targets: what is reached, what is short, and what this run cannot tell."""

from benchmarks.results import Results
from benchmarks.scale import FULL
from benchmarks.targets import Target, targets


def results(**readings: dict[str, dict[str, float]]) -> Results:
    made = Results(FULL, rounds=1)
    for system, figures in readings.items():
        for figure, reading in figures.items():
            made.add(system, figure, reading)
    return made


def found(made: Results, words: str) -> Target:
    return next(target for target in targets(made) if target.what.startswith(words))


def test_a_ratio_at_the_bound_is_reached() -> None:
    made = results(maitred={"drain": {"jobs_per_s": 200.0}}, bullmq={"drain": {"jobs_per_s": 100.0}})
    assert found(made, "drain ÷ bullmq").verdict == "reached"


def test_a_ratio_below_the_bound_is_short() -> None:
    made = results(maitred={"drain": {"jobs_per_s": 199.0}}, bullmq={"drain": {"jobs_per_s": 100.0}})
    assert found(made, "drain ÷ bullmq").verdict == "short"


def test_without_the_peer_a_target_is_open() -> None:
    made = results(maitred={"drain": {"jobs_per_s": 200.0}})
    assert found(made, "drain ÷ bullmq").verdict == "not measured"


def test_no_queue_has_to_start_jobs_sooner_than_the_bare_hand_off() -> None:
    made = results(
        maitred={"latency": {"p50_ms": 0.5, "p99_ms": 1.0}},
        huey={"latency": {"p50_ms": 0.8, "p99_ms": 0.9}},
        bare={"latency": {"p50_ms": 0.5, "p99_ms": 0.9}},
    )
    assert found(made, "start latency p50").verdict == "reached"
    assert found(made, "start latency p99").verdict == "short"


def test_bulk_is_held_against_the_best_peer_that_has_it() -> None:
    made = results(maitred={"bulk": {"jobs_per_s": 500.0}}, bullmq={"bulk": {"jobs_per_s": 101.0}})
    assert found(made, "bulk enqueue").verdict == "short"


def test_a_median_is_over_the_rounds() -> None:
    made = results(huey={"drain": {"jobs_per_s": 1.0}})
    for rate in (3.0, 100.0):
        made.add("huey", "drain", {"jobs_per_s": rate})
    assert made.median("huey", "drain", "jobs_per_s") == 3.0


def test_a_ratio_shows_how_far_the_rounds_lie_apart() -> None:
    made = results(maitred={"drain": {"jobs_per_s": 200.0}}, bullmq={"drain": {"jobs_per_s": 100.0}})
    made.add("maitred", "drain", {"jobs_per_s": 90.0})
    made.add("bullmq", "drain", {"jobs_per_s": 60.0})
    assert found(made, "drain ÷ bullmq").spread == (1.5, 2.0)


def test_rounds_that_no_longer_pair_up_have_no_spread() -> None:
    made = results(maitred={"drain": {"jobs_per_s": 200.0}}, bullmq={"drain": {"jobs_per_s": 100.0}})
    made.add("maitred", "drain", {"jobs_per_s": 90.0})
    assert found(made, "drain ÷ bullmq").spread is None
