"""`maitred.toml` and the environment: what is read, and how a mistake is told."""

import os
from pathlib import Path

import pytest

from maitred.config import Config, load
from maitred.core.settings import Settings
from maitred.errors import ConfigError

SECOND = 1_000_000
DAY = 86_400 * SECOND


@pytest.fixture(autouse=True)
def empty_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test starts in an empty directory and with no variable of ours."""
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.upper().startswith("MAITRED_"):
            monkeypatch.delenv(name)


def written(text: str) -> Path:
    file = Path("maitred.toml")
    file.write_text(text, "utf-8")
    return file


def mistakes(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(written(text))
    return str(caught.value).splitlines()


def test_with_no_file_there_is_one_queue_on_the_embedded_store() -> None:
    config = load()
    assert config.store.url is None
    assert config.store.durability == "everysec"
    assert list(config.queues) == ["default"]
    assert config.queues["default"].settings() == Settings()


def test_the_defaults_are_those_of_the_design() -> None:
    assert Settings() == Settings(
        order="newest-first",
        eager=False,
        per_recent=0,
        window=900 * SECOND,
        time_limit=600 * SECOND,
        lease=15 * SECOND,
        attempts=3,
        grace=10 * SECOND,
        kill_after=400_000,
        retention=7 * DAY,
        max_delay=30 * DAY,
        max_total=1_000_000,
        max_per_submitter=5_000,
        max_body=1_048_576,
        output_limit=1 << 20,
        artifact_limit=4 << 20,
        stages=("processing",),
        classes=(),
        elastic="borrow",
        interactive_idle=300 * SECOND,
        interactive_cap=3600 * SECOND,
        interactive_per_submitter=1,
    )


def test_a_file_in_the_working_directory_is_found() -> None:
    written('[queues.grading]\norder = "oldest-first"')
    assert load().queues["grading"].order == "oldest-first"


def test_a_file_without_queues_still_gives_the_default_one() -> None:
    assert list(load(written('[store]\nurl = "unix:///run/valkey.sock"')).queues) == ["default"]


def test_everything_of_a_queue_reaches_its_settings() -> None:
    config = load(
        written(
            """
            [store]
            url = "valkey://127.0.0.1:6379/0"
            durability = "always"
            [queues.grading]
            order = "oldest-first"
            delay = { per_recent = "90s", window = "1h30m" }
            eager = true
            time_limit = "20m"
            lease = 30
            attempts = 5
            grace = "1m"
            kill_after = "250ms"
            retention = "1d"
            max_delay = "2d"
            max_waiting = { total = 10, per_submitter = 2 }
            max_body = 2048
            output = "64KiB"
            artifacts = 0
            """
        )
    )
    assert config.store.url == "valkey://127.0.0.1:6379/0"
    assert config.store.durability == "always"
    assert config.queues["grading"].settings() == Settings(
        order="oldest-first",
        eager=True,
        per_recent=90 * SECOND,
        window=5400 * SECOND,
        time_limit=1200 * SECOND,
        lease=30 * SECOND,
        attempts=5,
        grace=60 * SECOND,
        kill_after=250_000,
        retention=DAY,
        max_delay=2 * DAY,
        max_total=10,
        max_per_submitter=2,
        max_body=2048,
        output_limit=64 << 10,
        artifact_limit=0,
    )


def test_half_of_a_table_leaves_the_other_half_at_its_default() -> None:
    queue = load(written("[queues.a]\nmax_waiting = { total = 7 }\ndelay = { per_recent = 1 }")).queues["a"]
    assert queue.settings() == Settings(max_total=7, per_recent=SECOND)


def test_the_environment_wins_over_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    written(
        '[store]\nurl = "unix:///a"\ndurability = "always"\n[queues.grading]\nattempts = 4\nlease = "20s"'
    )
    monkeypatch.setenv("MAITRED_STORE__URL", "redis://b:6379")
    monkeypatch.setenv("MAITRED_QUEUES__GRADING__ATTEMPTS", "9")
    monkeypatch.setenv("MAITRED_QUEUES__GRADING__EAGER", "true")
    monkeypatch.setenv("MAITRED_QUEUES__GRADING__DELAY__PER_RECENT", "60s")
    monkeypatch.setenv("MAITRED_STORE__DURABILITY", "")
    config = load()
    assert config.store.url == "redis://b:6379"
    assert config.store.durability == "always", "an empty variable is no value"
    queue = config.queues["grading"]
    assert (queue.attempts, queue.eager, queue.lease) == (9, True, 20 * SECOND)
    assert queue.settings().per_recent == 60 * SECOND


def test_other_variables_of_ours_are_not_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAITRED_SERVER", "/usr/bin/redis-server")
    assert load() == Config()


@pytest.mark.parametrize(
    ("variable", "says"),
    [
        ("MAITRED_STORE__URLL", "store.urll: there is no such setting; did you mean url?"),
        ("MAITRED_STROE__URL", "MAITRED_STROE__URL: there is no such setting; did you mean store?"),
        ("MAITRED_QUEUES__GRADING__ATTEMPTS", "queues.grading.attempts: 'many' is not allowed;"),
        ("MAITRED_STORE", "name one value, as in MAITRED_STORE__URL"),
    ],
)
def test_a_mistake_in_the_environment_is_refused(
    variable: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "many")
    with pytest.raises(ConfigError) as caught:
        load()
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ('order = "newest"', "order: 'newest' is not allowed; allowed is 'newest-first' or 'oldest-first'."),
        ("attempts = 0", "attempts: 0 is not allowed; allowed is a whole number from 1 to 100."),
        ("attempts = 101", "attempts: 101 is not allowed; allowed is a whole number from 1 to 100."),
        ("attempts = true", "attempts: True is not allowed; allowed is a whole number from 1 to 100."),
        ("attempts = 2.5", "attempts: 2.5 is not allowed; allowed is a whole number from 1 to 100."),
        ('lease = "10ms"', "lease: '10ms' is out of bounds; allowed is 1s to 1h."),
        ("eager = 7", "eager: 7 is not allowed; allowed is true or false."),
        ("max_waiting = 5", "max_waiting: 5 is not allowed; allowed is a table of settings."),
        ("delay = {}", "delay.per_recent: it is missing, and has no default."),
        ("max_body = 0", "max_body: 0 is not allowed; allowed is a whole number from 1 to 67108864."),
        ('output = "65MiB"', "output: '65MiB' is out of bounds; allowed is 0B to 64MiB."),
        ('artifacts = "1GB"', "artifacts: '1GB' is out of bounds; allowed is 0B to 256MiB."),
        ("max_waiting = { all = 1 }", "max_waiting.all: there is no such setting"),
    ],
)
def test_a_mistake_names_the_key_and_what_is_allowed(setting: str, says: str) -> None:
    (line,) = mistakes(f"[queues.grading]\n{setting}")
    assert line.startswith(f"queues.grading.{says}")


def test_an_unknown_key_is_refused_with_the_nearest_one_and_all_that_are_allowed() -> None:
    (line,) = mistakes("[queues.grading]\natempts = 3")
    assert line.startswith(
        "queues.grading.atempts: there is no such setting; did you mean attempts? Allowed are "
    )
    assert "max_waiting" in line


def test_every_mistake_has_a_line() -> None:
    lines = mistakes(
        'colour = 1\n[store]\ndurability = "never"\n[queues.a]\nlease = "x"\n[queues.b]\nlease = "y"'
    )
    assert sorted(line.partition(":")[0] for line in lines) == [
        "colour",
        "queues.a.lease",
        "queues.b.lease",
        "store.durability",
    ]


@pytest.mark.parametrize("name", ["Grading", "-a", "a b", "ä", "a" * 64, ""])
def test_a_queue_has_a_plain_name(name: str) -> None:
    (line,) = mistakes(f'[queues."{name}"]')
    assert f"queues.{name}: {name!r} is not a queue's name" in line


@pytest.mark.parametrize("name", ["a", "0", "grading", "cs-101_2", "a" * 63])
def test_letters_digits_and_two_marks_are_allowed_in_a_name(name: str) -> None:
    assert list(load(written(f'[queues."{name}"]')).queues) == [name]


@pytest.mark.parametrize(
    "url",
    [
        "valkey://h:6379/0",
        "redis://:secret@h/1",
        "valkey://[::1]:6379",
        "valkeys://user:secret@h:6380/0",
        "rediss://h",
        "unix:///run/v.sock",
        "unix:///a/b?db=2",
        "valkeys+sentinel://:secret@a,b:26380/main/2",
        "redis+cluster://a:7000,b:7000?replicas=1",
    ],
)
def test_a_stores_url_is_a_server_or_a_socket(url: str) -> None:
    assert load(written(f'[store]\nurl = "{url}"')).store.url == url


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("postgres://a:s3cret@b/0", "postgres:// is not a known scheme"),
        ("localhost", "no:// is not a known scheme"),
        ("valkey://", "does not say where the server is"),
        ("unix://", "does not say where the server is"),
        ("valkey://a:s3cret@b:99999/0", "is not a url"),
        ("valkey://a:s3cret@b/main", "the database has to be a number"),
        ("valkey+sentinel://a:s3cret@b,c:26379", "by which name the sentinels know the primary"),
    ],
)
def test_a_wrong_url_is_refused_without_repeating_its_password(url: str, says: str) -> None:
    (line,) = mistakes(f'[store]\nurl = "{url}"')
    assert line.startswith("store.url: ")
    assert says in line
    assert "unix:///PATH" in line
    assert "s3cret" not in line


def test_a_named_file_has_to_be_there() -> None:
    with pytest.raises(ConfigError, match=r"^nowhere\.toml: there is no such file\.$"):
        load(Path("nowhere.toml"))


def test_a_file_that_is_not_toml_is_refused_in_one_line() -> None:
    (line,) = mistakes("[store\n")
    assert line.startswith("maitred.toml: it is not TOML: ")


def test_a_directory_is_not_a_file() -> None:
    with pytest.raises(ConfigError, match="it cannot be read"):
        load(Path())


def test_settings_do_not_change_once_they_are_read() -> None:
    with pytest.raises(ValueError, match="frozen"):
        load().store.url = "unix:///elsewhere"  # type: ignore[misc]
