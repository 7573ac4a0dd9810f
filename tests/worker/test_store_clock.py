"""A worker is never sure too early that a moment of the store's has come."""

from maitred.core.settings import SECOND
from maitred.worker.store_clock import STEP, TRUSTED_FOR, StoreClock

NOON = 1_700_000_000 * SECOND


class Watch:
    """The worker's own clock, set by the test."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def seconds(amount: float) -> int:
    return round(amount * SECOND)


def test_before_the_first_answer_no_moment_is_known_to_have_come() -> None:
    assert StoreClock().local_time(0) == float("inf")


def test_the_time_goes_on_from_an_answer_with_the_workers_own_clock() -> None:
    watch = Watch()
    clock = StoreClock(watch)
    clock.hear(NOON)
    assert clock.local_time(NOON + seconds(5)) == 105.0
    watch.now = 103.0
    assert clock.local_time(NOON + seconds(5)) == 105.0, "that time passes changes nothing"


def test_whatever_the_answers_take_no_moment_is_seen_early_and_the_quickest_decides() -> None:
    watch = Watch()
    clock = StoreClock(watch)
    for written, way in ((0.0, 0.5), (1.0, 0.02), (2.0, 0.3), (3.0, 0.9)):
        watch.now = 100.0 + written + way
        clock.hear(NOON + seconds(written))
        assert clock.local_time(NOON) >= 100.0, "the store's noon is 100 here"
    assert clock.local_time(NOON) == 100.02


def test_a_start_in_the_inbox_tells_that_its_moment_is_past_and_an_old_one_tells_nothing() -> None:
    watch = Watch()
    clock = StoreClock(watch)
    clock.hear(NOON - seconds(0.5))
    clock.hear_of(NOON)
    assert clock.local_time(NOON) == 100.0
    clock.hear_of(NOON - seconds(60))
    assert clock.local_time(NOON) == 100.0


def test_a_store_whose_clock_was_put_back_is_believed_at_once() -> None:
    watch = Watch()
    clock = StoreClock(watch)
    clock.hear(NOON)
    clock.hear(NOON - 2 * STEP)
    assert clock.local_time(NOON) == 100.0 + 2 * STEP / SECOND


def test_a_store_whose_clock_runs_slower_is_followed() -> None:
    watch = Watch()
    clock = StoreClock(watch)
    for n in range(1000):
        watch.now = 100.0 + n
        stores = NOON + seconds(n * 0.9999)
        clock.hear(stores)
        assert watch.now - clock.local_time(stores) < (TRUSTED_FOR + 2) * 0.0001


def test_a_store_whose_clock_was_put_forward_is_believed_at_once() -> None:
    watch = Watch()
    clock = StoreClock(watch)
    clock.hear(NOON)
    clock.hear(NOON + seconds(3600))
    assert clock.local_time(NOON + seconds(3600)) == 100.0
