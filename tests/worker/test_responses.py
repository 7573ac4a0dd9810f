"""All responses of a script fit into a result together, and the longest of them are cut."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from maitred.worker.outcome import RESULT_LIMIT, completed
from maitred.worker.output import TAIL_LIMIT
from maitred.worker.responses import LIMIT, Response, Responses, fair_share


def answer(responses: Responses, printed: bytes, step: str = "0") -> None:
    response = Response({"step": step, "cmd": "x"}, "stdout", "stderr")
    responses.add(response)
    response.tails["stdout"].add(printed)
    responses.settle()


def test_a_short_answer_is_whole() -> None:
    responses = Responses()
    answer(responses, b"hello\n")
    assert responses.shown() == [{"step": "0", "cmd": "x", "stdout": "hello\n", "stderr": ""}]


def test_the_longest_are_cut_and_the_short_ones_stay_whole() -> None:
    responses = Responses(10_000)
    for text in (b"first", b"a" * 9_000, b"b" * 7_000, b"last"):
        answer(responses, text)
    first, long, longer, last = (each["stdout"] for each in responses.shown())
    assert (first, last) == ("first", "last")
    assert abs(len(long) - len(longer)) < 100
    assert long.startswith("[")
    assert "bytes cut]\naaa" in long
    assert len(msgspec.json.encode(responses.shown())) <= 10_000


def test_a_thousand_steps_that_print_nonsense_without_end_fit_into_a_result() -> None:
    responses = Responses()
    for step in range(1000):
        answer(responses, bytes(range(256)) * (TAIL_LIMIT // 256 + 1), str(step))
    outcome = completed({"responses": responses.shown()})
    assert outcome.code == ""
    assert len(outcome.result) <= LIMIT + 1000 < RESULT_LIMIT


@given(st.lists(st.integers(0, 1000), max_size=20), st.integers(0, 5000))
def test_a_fair_share_fits_and_is_the_largest_that_does(sizes: list[int], room: int) -> None:
    share = fair_share(sizes, room)
    assert sum(min(size, share) for size in sizes) <= room
    if any(size > share for size in sizes):
        assert sum(min(size, share + 1) for size in sizes) > room
