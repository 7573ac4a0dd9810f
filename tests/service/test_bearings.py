"""Where a watcher of all queues is: an id that says it exactly, and stays short."""

from hypothesis import given, settings
from hypothesis import strategies as st

from maitred.service.bearings import MOST_AHEAD, WHOLE, Bearings, Position, show_bearings

BASE = 1_794_823_969_810

entries = st.tuples(st.integers(BASE - 10**6, BASE + 10**6), st.integers(0, 10**6))
positions = st.builds(Position, entries, st.one_of(st.just(WHOLE), st.integers(1, 10**6)))


@settings(max_examples=30)
@given(st.dictionaries(st.text(max_size=20), positions, max_size=20))
def test_what_is_ahead_of_the_base_is_read_as_it_was_written(ahead: dict[str, Position]) -> None:
    read = Bearings.read(show_bearings(BASE, ahead.items()))
    assert read
    for queue, at in ahead.items():
        expected = at if at.entry[0] > BASE else Position((BASE, WHOLE))
        assert read.of(queue) == expected
    assert read.of("another queue that is quiet") == Position((BASE, WHOLE))


@given(st.text(max_size=40))
def test_any_other_text_is_no_id_or_one_that_can_be_used(text: str) -> None:
    read = Bearings.read(text)
    assert read is None or read.of("q").entry[0] >= 0


def test_an_id_is_short_however_many_queues_there_are() -> None:
    quiet = {f"q{n}": Position((BASE - n, 3)) for n in range(10_000)}
    assert len(show_bearings(BASE, quiet.items())) == 11
    few = quiet | {f"busy{n}": Position((BASE + 9_000 + n, 3)) for n in range(10)}
    assert len(show_bearings(BASE, few.items())) < 11 + 10 * 16
    busy = {f"q{n}": Position((BASE + 1 + n, 3), 5) for n in range(10_000)}
    id = show_bearings(BASE, busy.items())
    assert len(id) < 6_000
    read = Bearings.read(id)
    assert read
    assert len(read.ahead) == MOST_AHEAD
    assert read.of("q9999") == busy["q9999"]
    assert read.of("q0") == Position((BASE, WHOLE)), "it is told again rather than missed"
