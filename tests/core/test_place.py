"""Line order: the rank of a place among all others, with nothing but the clock."""

import random

from maitred.core.job import Band, Lane, Place, Submitter

NOW = 1_000


def place(band: Band, *, release: int = 0, arrival: int = 1, priority: int = 5) -> Place:
    return Place(Lane.of(band, priority, 1, "command"), release, arrival, Submitter("user", "1"), 0)


def in_line(*places: Place) -> list[Place]:
    mixed = random.Random(7).sample(places, len(places))
    return sorted(mixed, key=lambda place: place.rank(NOW))


def test_what_is_due_goes_by_band_and_what_is_not_comes_last() -> None:
    expected = [
        place(Band.FRONT),
        place(Band.IMMEDIATE),
        place(Band.SCHEDULED),
        place(Band.BULK),
        place(Band.BULK, release=NOW + 1),
        place(Band.SCHEDULED, release=NOW + 2),
    ]
    assert in_line(*expected) == expected


def test_at_the_front_the_last_one_moved_goes_first_and_elsewhere_the_first_to_arrive() -> None:
    front = [place(Band.FRONT, arrival=2), place(Band.FRONT, arrival=1)]
    immediate = [place(Band.IMMEDIATE, arrival=1), place(Band.IMMEDIATE, arrival=2)]
    assert in_line(*front, *immediate) == front + immediate


def test_priority_comes_before_release_and_release_before_arrival() -> None:
    expected = [
        place(Band.SCHEDULED, priority=1, release=9, arrival=9),
        place(Band.SCHEDULED, priority=5, release=1, arrival=8),
        place(Band.SCHEDULED, priority=5, release=2, arrival=6),
        place(Band.SCHEDULED, priority=5, release=2, arrival=7),
    ]
    assert in_line(*expected) == expected


def test_among_what_is_not_due_priority_does_not_count() -> None:
    expected = [
        place(Band.SCHEDULED, priority=9, release=NOW + 1),
        place(Band.SCHEDULED, priority=0, release=NOW + 2),
    ]
    assert in_line(*expected) == expected


def test_a_place_is_due_from_its_release_on_inclusive() -> None:
    assert place(Band.SCHEDULED, release=NOW).due(NOW)
    assert not place(Band.SCHEDULED, release=NOW + 1).due(NOW)
    assert place(Band.IMMEDIATE, release=NOW + 1).due(NOW)


def test_lanes_and_submitters_read_back_what_they_wrote() -> None:
    lane = Lane.of(Band.SCHEDULED, 7, 1, "handler:a.b")
    assert Lane.read(str(lane)) == lane
    assert Lane.of(Band.FRONT, 7, 1, "command").priority == 0
    assert Submitter.read(str(Submitter("team", "a.b/c"))) == Submitter("team", "a.b/c")
