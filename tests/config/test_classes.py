"""Duration classes in `maitred.toml` and in the environment: what is read, and how a mistake is told."""

import os
from pathlib import Path

import pytest

from maitred.config import load
from maitred.config.values import show_limit
from maitred.core.classes import DurationClass, Limit, limits
from maitred.core.settings import SECOND, Settings
from maitred.errors import ConfigError

FAST, MEDIUM, SLOW = 'fast = { cap = "3s" }', 'medium = { cap = "10s" }', 'slow = { cap = "30s" }'


@pytest.fixture(autouse=True)
def empty_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test starts in an empty directory and with no variable of ours."""
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.upper().startswith("MAITRED_"):
            monkeypatch.delenv(name)


def render(text: str) -> Settings:
    """Give the settings of the queue `render` with this text in the file."""
    Path("maitred.toml").write_text(text, "utf-8")
    return load().queues["render"].settings()


def classes(*lines: str) -> Settings:
    """Give the settings of a queue with these classes."""
    return render("\n".join(("[queues.render.classes]", *lines)))


def mistakes(*lines: str) -> list[str]:
    """Give what is said of these classes, without the name of their table."""
    with pytest.raises(ConfigError) as caught:
        classes(*lines)
    said = str(caught.value).splitlines()
    assert all(line.startswith("queues.render.classes") for line in said)
    return [line.removeprefix("queues.render.classes").removeprefix(".") for line in said]


def test_classes_are_read_in_the_order_of_the_file_with_counts_and_percentages() -> None:
    settings = classes(
        FAST,
        'medium = { cap = "10s", limit = "50%" }',
        'slow = { cap = "30s", limit = "12.5%" }',
        'night = { cap = "2h", limit = 1 }',
        'weekend = { cap = "2d" }',
    )
    assert settings.levels == (
        DurationClass("fast", 3 * SECOND),
        DurationClass("medium", 10 * SECOND, Limit(50_000, percent=True)),
        DurationClass("slow", 30 * SECOND, Limit(12_500, percent=True)),
        DurationClass("night", 7200 * SECOND, Limit(1)),
        DurationClass("weekend", 172_800 * SECOND),
    )
    assert limits(settings.levels, 16) == [16, 8, 2, 1, 1]


def test_a_queue_without_classes_has_one_with_the_time_limit() -> None:
    assert render('[queues.render]\ntime_limit = "2m"').levels == (DurationClass("default", 120 * SECOND),)


def test_with_classes_the_last_cap_is_the_time_limit() -> None:
    assert classes(FAST, MEDIUM).time_limit == 10 * SECOND


def test_a_time_limit_beside_classes_is_refused_since_it_would_have_no_effect() -> None:
    with pytest.raises(ConfigError) as caught:
        render(f'[queues.render]\ntime_limit = "10m"\n[queues.render.classes]\n{FAST}')
    assert str(caught.value) == (
        "queues.render.time_limit: it would have no effect: the caps of the classes hold; "
        "leave out one of the two."
    )


def test_the_elastic_policy_and_the_bounds_of_interactive_jobs_are_read() -> None:
    settings = render(
        """
        [queues.render]
        elastic = "squeeze"
        [queues.render.interactive]
        idle = "1m"
        cap = "2h"
        per_submitter = 3
        """
    )
    assert settings == Settings(
        elastic="squeeze",
        interactive_idle=60 * SECOND,
        interactive_cap=7200 * SECOND,
        interactive_per_submitter=3,
    )


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ((SLOW, MEDIUM), "medium.cap: 10s is not allowed; allowed is more than 30s"),
        ((FAST, 'again = { cap = "3s" }'), "again.cap: 3s is not allowed; allowed is more than 3s"),
        ((MEDIUM, 'slow = { cap = "99ms" }'), "slow.cap: '99ms' is out of bounds; allowed is 100ms to 30d."),
        ((FAST, 'slow = { cap = "31d" }'), "slow.cap: '31d' is out of bounds; allowed is 100ms to 30d."),
        ((FAST, "slow = { limit = 1 }"), "slow.cap: it is missing, and has no default."),
        (('fast = { cap = "3s", limit = 4 }',), "fast.limit: the first class has none"),
        (('fast = { cap = "3s", limit = "100%" }',), "fast.limit: the first class has none"),
        (
            (FAST, 'medium = { cap = "10s", limit = "25%" }', 'slow = { cap = "30s", limit = "25.001%" }'),
            "slow.limit: 25.001% is not allowed; allowed is at most 25%",
        ),
        (
            (FAST, 'medium = { cap = "10s", limit = 2 }', 'slow = { cap = "30s", limit = 3 }'),
            "slow.limit: 3 is not allowed; allowed is at most 2",
        ),
        ((FAST, 'slow = { cap = "30s", color = 1 }'), "slow.color: there is no such setting"),
        ((FAST, 'slow = "30s"'), "slow: '30s' is not allowed; allowed is a table of settings."),
        ((), ": there are 0 classes; allowed are 1 to 16, shortest first."),
        (
            tuple(f'c{number} = {{ cap = "{number + 1}s" }}' for number in range(17)),
            ": there are 17 classes; allowed are 1 to 16, shortest first.",
        ),
    ],
)
def test_a_mistake_names_the_key_and_what_is_allowed(lines: tuple[str, ...], says: str) -> None:
    assert mistakes(*lines)[0].startswith(says)


@pytest.mark.parametrize(
    "limit", ["0", '"0%"', '"0.0001%"', '"100.001%"', '"-5%"', '"%"', '"half"', "0.5", "-1", "true", '"1e2%"']
)
def test_a_limit_is_a_count_or_a_percentage_above_0(limit: str) -> None:
    [said] = mistakes(FAST, f'slow = {{ cap = "30s", limit = {limit} }}')
    assert said.startswith("slow.limit: ")
    assert 'allowed is a whole number from 1 to 1000000, or a part such as "50%"' in said


def test_a_class_without_a_limit_has_as_many_as_the_one_before_and_changes_nothing_for_the_next() -> None:
    settings = classes(
        FAST,
        MEDIUM,
        'long = { cap = "20s", limit = "50%" }',
        SLOW,
        'night = { cap = "1h", limit = "25%" }',
        'weekend = { cap = "2d", limit = 2 }',
        'holidays = { cap = "3d" }',
    )
    assert limits(settings.levels, 16) == [16, 16, 8, 8, 4, 2, 2]


def test_a_percentage_after_a_count_is_a_part_of_that_count() -> None:
    settings = classes(
        FAST,
        'medium = { cap = "10s", limit = "10%" }',
        'slow = { cap = "30s", limit = 4 }',
        'night = { cap = "1h", limit = "50%" }',
    )
    assert limits(settings.levels, 100) == [100, 10, 4, 2]


@pytest.mark.parametrize("name", ["Fast", "a b", "ä", "a" * 33, ""])
def test_a_class_has_a_plain_name(name: str) -> None:
    [said] = mistakes(f'"{name}" = {{ cap = "3s" }}')
    assert said.endswith(f"{name!r} is not a class's name; allowed are 1 to 32 of a-z, 0-9, _ and -.")


@pytest.mark.parametrize("name", ["a", "0", "-", "_fast_", "a" * 32])
def test_letters_digits_and_two_marks_are_allowed_in_a_name(name: str) -> None:
    assert [each.name for each in classes(f'"{name}" = {{ cap = "3s" }}').classes] == [name]


def test_all_mistakes_between_classes_are_told_at_once() -> None:
    said = mistakes(
        'fast = { cap = "3s", limit = 1 }',
        'medium = { cap = "2s", limit = "50%" }',
        'slow = { cap = "30s", limit = "60%" }',
    )
    assert [line.partition(":")[0] for line in said] == ["fast.limit", "medium.cap", "slow.limit"]


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ('elastic = "steal"', "elastic: 'steal' is not allowed; allowed is 'borrow' or 'squeeze'."),
        ('interactive = { idle = "0s" }', "interactive.idle: '0s' is out of bounds; allowed is 1s to 30d."),
        ('interactive = { cap = "31d" }', "interactive.cap: '31d' is out of bounds; allowed is 1s to 30d."),
        ("interactive = { per_submitter = 1001 }", "interactive.per_submitter: 1001 is not allowed;"),
        ("interactive = { idel = 5 }", "interactive.idel: there is no such setting; did you mean idle?"),
        ("interactive = true", "interactive: True is not allowed; allowed is a table of settings."),
        ("classes = 3", "classes: 3 is not allowed; allowed is a table of settings."),
    ],
)
def test_a_mistake_of_the_floor_names_the_key_too(setting: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        render(f"[queues.render]\n{setting}")
    assert str(caught.value).startswith(f"queues.render.{says}")


def test_classes_can_come_from_the_environment_alone_in_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (
        ("SLOW__LIMIT", "1"),
        ("SLOW__CAP", "30s"),
        ("FAST__CAP", "3"),
        ("MEDIUM__LIMIT", "50%"),
        ("MEDIUM__CAP", "10s"),
    ):
        monkeypatch.setenv(f"MAITRED_QUEUES__RENDER__CLASSES__{name}", value)
    monkeypatch.setenv("MAITRED_QUEUES__RENDER__ELASTIC", "squeeze")
    monkeypatch.setenv("MAITRED_QUEUES__RENDER__INTERACTIVE__PER_SUBMITTER", "0")
    settings = load().queues["render"].settings()
    assert settings.levels == (
        DurationClass("fast", 3 * SECOND),
        DurationClass("medium", 10 * SECOND, Limit(50_000, percent=True)),
        DurationClass("slow", 30 * SECOND, Limit(1)),
    )
    assert (settings.elastic, settings.interactive_per_submitter) == ("squeeze", 0)


def test_the_environment_changes_a_class_of_the_file_and_adds_longer_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MAITRED_QUEUES__RENDER__CLASSES__MEDIUM__LIMIT", "2")
    monkeypatch.setenv("MAITRED_QUEUES__RENDER__CLASSES__SLOW__CAP", "30s")
    assert classes(FAST, MEDIUM).levels == (
        DurationClass("fast", 3 * SECOND),
        DurationClass("medium", 10 * SECOND, Limit(2)),
        DurationClass("slow", 30 * SECOND),
    )


def test_a_mistake_in_a_variable_is_told_like_one_in_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAITRED_QUEUES__RENDER__CLASSES__MEDIUM__LIMIT", "half")
    monkeypatch.setenv("MAITRED_QUEUES__RENDER__CLASSES__MEDIUM__CAP", "long")
    assert [line.partition(":")[0] for line in mistakes(FAST)] == ["medium.cap", "medium.limit"]


@pytest.mark.parametrize("text", ["50%", "12.5%", "0.001%", "99.999%", "100%"])
def test_a_limit_is_shown_as_it_was_written(text: str) -> None:
    limit = classes(FAST, f'slow = {{ cap = "30s", limit = "{text}" }}').classes[1].limit
    assert limit
    assert show_limit(limit) == text
