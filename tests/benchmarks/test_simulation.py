"""The simulator: one seed gives one output, its people are as it says, and the docs show its tables."""

import re
import statistics
import xml.etree.ElementTree as ET
from collections import Counter
from functools import cache
from itertools import pairwise

import pytest

from benchmarks.simulation.command import SEED, main, simulate
from benchmarks.simulation.deadline import deadline_arrivals
from benchmarks.simulation.engine import Engine
from benchmarks.simulation.page import PAGE, PLOT, section, with_section
from benchmarks.simulation.play import Play, play
from benchmarks.simulation.plot import LINES, plot
from benchmarks.simulation.policies import BORROW, PLAIN, policies_for
from benchmarks.simulation.tables import overview, tables
from benchmarks.simulation.visit import Arrival
from benchmarks.simulation.workloads import GRADING, WORKLOADS, classes, deadline
from maitred.core.settings import MINUTE, SECOND, Settings

HALF = SECOND // 2


@cache
def plays(name: str) -> list[Play]:
    return simulate(name, SEED)


def job(at: float, name: str, run: float, level: int | None = None, *, session: bool = False) -> Arrival:
    return Arrival(round(at * SECOND), name, name, round(run * SECOND), level, session)


def outcomes(
    slots: int, *arrivals: Arrival, policy: str = "borrow"
) -> dict[str, tuple[float | None, float, str]]:
    """Play on a floor with classes of 3, 10 and 30 s, where a stop takes half a second."""
    settings = Settings(
        classes=classes((3, 10, 30), (50, 25)),
        elastic="squeeze" if policy == "squeeze" else "borrow",
        kill_after=HALF,
    )
    visits = Engine(settings, slots).play(arrivals)
    return {
        name: (None if visit.start is None else visit.start / SECOND, visit.end / SECOND, visit.code)
        for name, visit in visits.items()
    }


def test_a_job_that_is_done_in_time_ends_then_and_one_that_is_not_is_stopped_at_its_cap() -> None:
    assert outcomes(1, job(0, "a", 2, 1), job(1, "b", 4, 1), job(2, "c", 1, 1)) == {
        "a": (0, 2, ""),
        "b": (2, 5.5, "time-limit"),
        "c": (5.5, 6.5, ""),
    }


def test_an_overdue_elastic_job_is_cut_when_somebody_waits_and_its_slot_is_free_when_it_has_stopped() -> None:
    assert outcomes(1, job(0, "e", 20), job(1, "f", 1, 1)) == {"e": (0, 3.5, "cut"), "f": (3.5, 4.5, "")}
    assert outcomes(1, job(0, "e", 20), job(8, "f", 1, 1)) == {"e": (0, 8.5, "cut"), "f": (8.5, 9.5, "")}


def test_a_lowered_limit_is_obeyed_and_a_run_that_ends_before_it_is_complete() -> None:
    assert outcomes(1, job(0, "e", 20), job(1, "f", 1, 1), policy="squeeze")["e"] == (0, 3.5, "cut")
    assert outcomes(1, job(0, "e", 2.5), job(1, "f", 1, 1), policy="squeeze")["e"] == (0, 2.5, "")


def test_a_session_is_denied_at_a_full_floor_and_halted_for_a_job() -> None:
    assert outcomes(1, job(0, "i", 60, session=True), job(1, "j", 60, session=True), job(2, "f", 1, 1)) == {
        "i": (0, 2.5, "halted"),
        "j": (None, 0, "denied"),
        "f": (2.5, 3.5, ""),
    }


def test_the_deadline_has_the_numbers_that_it_says_whatever_the_seed() -> None:
    for seed in (SEED, 2):
        arrivals = list(deadline_arrivals(seed, GRADING))
        runs = [arrival.run / SECOND for arrival in arrivals]
        sent = Counter(arrival.submitter for arrival in arrivals)
        assert (len(arrivals), len(sent), max(sent.values())) == (2_947, 304, 45)
        assert list(sent.values()).count(45) == 1
        assert (statistics.fmean(runs), statistics.median(runs), max(runs)) == (32, 26, 111)
        assert min(runs) > 0
        moments = [arrival.at for arrival in arrivals]
        assert moments == sorted(moments)
        hours = Counter(moment // (60 * MINUTE) for moment in moments)
        assert all(1.9 < hours[hour + 1] / hours[hour] < 2.1 for hour in range(3))
        assert all(a.level is None or a.run <= GRADING[a.level - 1].cap for a in arrivals)


def test_the_steady_workload_asks_for_seven_tenths_of_the_slots() -> None:
    workload = WORKLOADS["steady"](SEED)
    work = sum(min(arrival.run, 30 * SECOND) for arrival in workload.arrivals if not arrival.interactive)
    assert 0.65 < work / (workload.slots * workload.arrivals[-1].at) < 0.75


def test_the_burst_comes_in_one_call() -> None:
    moments = Counter(a.at for a in WORKLOADS["burst"](SEED).arrivals if not a.interactive)
    assert list(moments.values()) == [300]


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_workload_is_the_same_for_one_seed_and_another_for_the_next(name: str) -> None:
    assert WORKLOADS[name](SEED) == WORKLOADS[name](SEED)
    assert WORKLOADS[name](SEED).arrivals != WORKLOADS[name](SEED + 1).arrivals


def test_the_same_seed_prints_the_same_bytes(capsys: pytest.CaptureFixture[str]) -> None:
    printed = []
    for _ in range(2):
        assert main(["--workload", "burst", "--seed", "3"]) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]
    assert "seed 3" in printed[0]


def test_everybody_ends_exactly_once_and_no_slot_is_used_twice() -> None:
    for each in plays("burst"):
        assert len(each.visits) == len(each.workload.arrivals) == len({v.arrival.id for v in each.visits})
        begun = [(visit.start, 1) for visit in each.visits if visit.start is not None]
        ended = [(visit.end, -1) for visit in each.visits if visit.start is not None]
        taken = 0
        for _, change in sorted(begun + ended):
            taken += change
            assert 0 <= taken <= each.workload.slots
        assert 0 < each.goodput <= each.utilisation <= 1


@pytest.mark.parametrize("name", ["steady", "burst"])
def test_the_tables_of_the_page_are_what_the_simulator_gives(name: str) -> None:
    assert section(PAGE.read_text("utf-8"), name) == tables(plays(name)), "`make simulate ARGS=--write`"


def test_the_tables_of_the_deadline_are_there_for_each_policy_and_its_first_row_is_right() -> None:
    workload = deadline(SEED)
    shown = section(PAGE.read_text("utf-8"), "deadline")
    names = [policy.name for policy in policies_for(workload)]
    assert re.findall(r"^\| (\S[^|]*?) +\|", shown, re.MULTILINE) == [
        *("policy", *names),
        *("mean / p99 wait s", *names),
        *("mean wait of a submitter, s", *names),
    ]
    computed = overview([play(workload, BORROW, SEED)]).splitlines()[-1]
    row = next(line for line in shown.splitlines() if line.startswith("| borrow "))
    assert row.replace(" ", "") == computed.replace(" ", "")


def test_only_what_is_between_the_marks_is_written() -> None:
    page = "a\n<!-- simulated: x -->\n<!-- end of x -->\nb\n"
    written = with_section(page, "x", "one\n")
    assert written == "a\n<!-- simulated: x -->\n\none\n\n<!-- end of x -->\nb\n"
    assert section(written, "x") == "one\n"
    assert with_section(written, "x", "one\n") == written
    with pytest.raises(ValueError, match="no marks"):
        section(page, "y")


def test_the_pages_are_written_with_one_seed_only(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--write", "--seed", "2"])
    assert "seed 1" in capsys.readouterr().err


def test_the_plot_is_a_picture_with_a_line_for_each_policy_in_each_panel() -> None:
    workload = deadline(SEED)
    some = workload.arrivals[-200:]
    small = type(workload)("deadline", "", workload.slots, workload.classes, some, again=True)
    drawn = plot([play(small, policy, SEED) for policy in (BORROW, PLAIN)])
    assert drawn == plot([play(small, policy, SEED) for policy in (BORROW, PLAIN)])
    for text, lines in ((drawn, 2), (PLOT.read_text("utf-8"), len(LINES))):
        picture = ET.fromstring(text)
        curves = picture.findall("{http://www.w3.org/2000/svg}polyline")
        assert len(curves) == 3 * lines
        for curve in curves:
            points = [tuple(map(float, point.split(","))) for point in curve.attrib["points"].split()]
            assert all(left[0] < right[0] for left, right in pairwise(points))
        words = "".join(picture.itertext())
        assert "minutes before the deadline" in words
        assert "wait, minutes" in words
