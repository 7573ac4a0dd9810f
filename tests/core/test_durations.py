"""Learned durations: what was stopped did not end by itself, what is old fades, few are not trusted."""

import random

import hypothesis.strategies as st
import pytest
from hypothesis import example, given, settings

from maitred.core.durations import KINDS, MEMORY, Coverage, Durations
from maitred.core.settings import MINUTE, SECOND


def learned(*seconds: float, censored: tuple[float, ...] = (), times: int = 20) -> Durations:
    durations = Durations()
    for _ in range(times):
        for each in seconds:
            durations.note("a", 1, round(each * SECOND))
        for each in censored:
            durations.note("a", 1, round(each * SECOND), censored=True)
    return durations


def test_with_nothing_learned_any_duration_up_to_the_bound_is_as_likely() -> None:
    mean, variance = Durations().expect("a", 1, 12 * SECOND)
    assert mean == 6 * SECOND
    assert variance == pytest.approx(12 * SECOND**2)


def test_a_few_observations_outweigh_the_guess() -> None:
    guesses = [
        learned(1, times=times).expect("a", 1, 10 * MINUTE).mean / SECOND for times in (0, 1, 3, 10, 30)
    ]
    assert guesses[0] == 300
    assert guesses == sorted(guesses, reverse=True)
    assert guesses[2] == pytest.approx(31, abs=2)
    assert guesses[4] == pytest.approx(1.3, abs=0.1)


def test_mean_and_variance_are_those_of_what_was_seen() -> None:
    mean, variance = learned(1, 2, 6).expect("a", 1, 10 * SECOND)
    assert mean == pytest.approx(3 * SECOND, rel=0.03)
    assert variance == pytest.approx(14 / 3 * SECOND**2, rel=0.06)


def test_a_job_that_was_stopped_at_its_cap_did_not_take_so_long() -> None:
    durations = learned(2, censored=(10,))
    assert durations.expect("a", 1, 10 * SECOND).mean == pytest.approx(6 * SECOND, rel=0.03)
    assert durations.expect("a", 1, 30 * SECOND).mean == pytest.approx(16 * SECOND, rel=0.03)
    taken_for_ends = learned(2, 10)
    assert taken_for_ends.expect("a", 1, 30 * SECOND).mean == pytest.approx(6 * SECOND, rel=0.03)


def test_one_that_was_cut_early_says_only_that_it_lived_so_long() -> None:
    mean = learned(4, 8, censored=(1, 1, 1, 1)).expect("a", 1, 10 * SECOND).mean
    assert mean == pytest.approx(6 * SECOND, rel=0.03)


def test_no_run_is_expected_beyond_its_bound() -> None:
    durations = learned(2, 20)
    assert durations.expect("a", 1, 10 * SECOND).mean == pytest.approx(6 * SECOND, rel=0.03)
    assert durations.expect("a", 1, 3 * SECOND, elapsed=5 * SECOND) == (3 * SECOND, 0)


def test_whoever_outlived_the_short_ones_is_one_of_the_long_ones() -> None:
    durations = learned(1, 1, 1, 20)
    assert durations.expect("a", 1, 30 * SECOND).mean == pytest.approx(5.75 * SECOND, rel=0.03)
    assert durations.expect("a", 1, 30 * SECOND, elapsed=5 * SECOND).mean == pytest.approx(
        20 * SECOND, rel=0.03
    )


def test_whoever_outlived_all_may_end_at_any_time_up_to_its_bound() -> None:
    assert learned(1).expect("a", 1, 30 * SECOND, elapsed=10 * SECOND).mean == 20 * SECOND


def test_kinds_of_jobs_are_strangers() -> None:
    durations = learned(1)
    for need, level, elastic in (("b", 1, False), ("a", 2, False), ("a", 1, True)):
        assert durations.expect(need, level, 10 * SECOND, elastic=elastic).mean == 5 * SECOND


def test_the_old_fades_away() -> None:
    durations = learned(8, times=5 * MEMORY)
    for _ in range(3 * MEMORY):
        durations.note("a", 1, SECOND)
    assert durations.expect("a", 1, 10 * SECOND).mean == pytest.approx(1.35 * SECOND, rel=0.02)


def test_it_learns_for_ever() -> None:
    durations = learned(2, censored=(10,), times=300 * MEMORY)
    assert durations.expect("a", 1, 10 * SECOND).mean == pytest.approx(6 * SECOND, rel=0.01)


def test_the_kind_that_was_not_seen_for_longest_is_forgotten_first() -> None:
    durations = learned(1)
    for number in range(KINDS - 1):
        durations.note(str(number), 1, SECOND)
    durations.note("a", 1, SECOND)
    durations.note("one more", 1, SECOND)
    assert durations.expect("a", 1, 10 * SECOND).mean < 2 * SECOND
    assert durations.expect("0", 1, 10 * SECOND).mean == 5 * SECOND
    assert durations.expect("1", 1, 10 * SECOND).mean < 4 * SECOND


runs = st.lists(st.tuples(st.integers(0, 1 << 45), st.booleans()), max_size=30)


@settings(max_examples=500, deadline=None)
@given(runs, st.integers(1, 1 << 45), st.integers(0, 1 << 45))
@example([(0, False), (0, False), (2, False)], 1, 0)
def test_what_is_expected_lies_between_what_has_run_and_the_bound(
    seen: list[tuple[int, bool]], bound: int, elapsed: int
) -> None:
    durations = Durations()
    for taken, censored in seen:
        durations.note("a", 1, taken, censored=censored)
    mean, variance = durations.expect("a", 1, bound, elapsed=elapsed)
    assert min(elapsed, bound) <= mean <= bound
    assert 0 <= variance <= (bound - min(elapsed, bound)) ** 2 / 4 + 1e-6 * bound**2


def test_coverage_counts_the_ranges_that_held() -> None:
    coverage = Coverage()
    assert coverage.share is None
    for low, high, start in ((1, 3, 1), (1, 3, 3), (1, 3, 4), (5, 9, 4)):
        coverage.note(low, high, start)
    assert (coverage.early, coverage.held, coverage.late) == (1, 2, 1)
    assert coverage.share == 0.5


def test_ranges_are_widened_until_as_many_hold_as_were_aimed_at() -> None:
    dice = random.Random(5)
    coverage = Coverage()
    recent = []
    for _ in range(3_000):
        reach = 500 * coverage.width
        start = round(dice.gauss(0, 1_000))
        coverage.note(round(-reach), round(reach), start)
        recent.append(abs(start) <= reach)
    assert coverage.width == pytest.approx(2.56, rel=0.4)
    assert sum(recent[-2_000:]) / 2_000 == pytest.approx(0.8, abs=0.02)
