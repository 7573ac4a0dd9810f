"""The settings of the Ledger: stages, space, profiles, back-off, and where the record is kept."""

import json
import os
from dataclasses import asdict
from pathlib import Path

import pytest

from maitred import size
from maitred.config import load
from maitred.core.settings import SECOND, Settings
from maitred.core.stages import INGEST
from maitred.errors import ConfigError
from maitred.store.valkey.store import _read_settings

SIX = 'stages = ["estimating", "provisioning", "downloading", "processing", "recording", "notify"]'


@pytest.fixture(autouse=True)
def empty_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test starts in an empty directory and with no variable of ours."""
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.upper().startswith("MAITRED_"):
            monkeypatch.delenv(name)


def settings(text: str = "") -> Settings:
    Path("maitred.toml").write_text(f"[queues.ingest]\n{text}", "utf-8")
    return load().queues["ingest"].settings()


def mistakes(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        settings(text)
    return str(caught.value).splitlines()


def test_everything_of_the_ledger_reaches_its_settings() -> None:
    assert settings(
        f"""
        {SIX}
        space = "200GB"
        profiles = ["ucb_content", "a/b:c"]
        backoff = {{ first = "2s", most = "1m" }}
        ledger = "zookeeper://a:2181,b:2182,[::1]:2183/merritt/ingest"
        layout = "mrt-zk"
        """
    ) == Settings(
        stages=INGEST,
        space=200_000_000_000,
        profiles=("ucb_content", "a/b:c"),
        backoff=2 * SECOND,
        most_backoff=60 * SECOND,
        ledger="zookeeper://a:2181,b:2182,[::1]:2183/merritt/ingest",
        layout="mrt-zk",
    )


def test_a_queue_that_names_nothing_has_one_stage_and_no_ledger() -> None:
    plain = settings()
    assert plain == Settings()
    assert not plain.staged
    assert settings('stages = ["grading"]').staged, "one stage by another name has a handler of its own"


def test_the_environment_names_lists_with_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAITRED_QUEUES__INGEST__STAGES", "estimating, provisioning")
    monkeypatch.setenv("MAITRED_QUEUES__INGEST__SPACE", "1kB")
    monkeypatch.setenv("MAITRED_QUEUES__INGEST__BACKOFF__FIRST", "3s")
    found = settings()
    assert (found.stages, found.space, found.backoff) == (
        ("estimating", "provisioning"),
        1_000,
        3 * SECOND,
    )


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("stages = []", "stages: there are 0 stages; allowed are 1 to 32, the first one first."),
        (
            f"stages = {[f's{n}' for n in range(33)]}",
            "stages: there are 33 stages; allowed are 1 to 32, the first one first.",
        ),
        ("stages = 7", "stages: 7 is not allowed; allowed is a list of names."),
        ('stages = ["a", 7]', "stages: ['a', 7] is not allowed; allowed is a list of names."),
        ('stages = ["a", "b", "a"]', "stages: 'a' is there twice; allowed is each name once."),
        (
            'stages = ["Load"]',
            "stages: 'Load' is not a stage's name; allowed are 1 to 32 of a-z, 0-9, _ and -,",
        ),
        ('stages = ["9lives"]', "stages: '9lives' is not a stage's name;"),
        (f'stages = ["{"a" * 33}"]', f"stages: '{'a' * 33}' is not a stage's name;"),
        (
            'stages = ["a", "held"]',
            "stages: 'held' is the name of another state; allowed is any but completed,",
        ),
        ('stages = ["deleted"]', "stages: 'deleted' is the name of another state;"),
        ('space = "200GB"', "space: it needs a stage 'provisioning', where jobs get it; stages has none."),
        (f'{SIX}\nspace = "200 apples"', "space: '200 apples' is not a size; write one like"),
        (f'{SIX}\nspace = "-1GB"', "space: '-1GB' is not a size;"),
        (f"{SIX}\nspace = 0", "space: 0 is out of bounds; allowed is 1B to 1000TB."),
        (f'{SIX}\nspace = "1001TB"', "space: '1001TB' is out of bounds; allowed is 1B to 1000TB."),
        (f"{SIX}\nspace = true", "space: True is not a size;"),
        ("profiles = []", "profiles: there are 0 profiles; allowed are 1 to 1000, or no such key for any."),
        (
            'profiles = [""]',
            "profiles: '' is not a profile's name; allowed are 1 to 256 bytes of plain text.",
        ),
        ('profiles = ["a\\nb"]', "profiles: 'a\\nb' is not a profile's name;"),
        ('profiles = ["p", "p"]', "profiles: 'p' is there twice;"),
        ("backoff = 3", "backoff: 3 is not allowed; allowed is a table of settings."),
        ('backoff = { first = "x" }', "backoff.first: 'x' is not a duration;"),
        ('backoff = { first = "0s" }', "backoff.first: '0s' is out of bounds; allowed is 10ms to 1d."),
        (
            'backoff = { first = "10m" }',
            "backoff.most: 5m is not allowed; allowed is 10m or more, which is `first`.",
        ),
        ("backoff = { last = 1 }", "backoff.last: there is no such setting. Allowed are first, most."),
        ('layout = "seed"', "layout: it is the layout of a ledger's tree, and would have no effect without"),
        ('layout = "tree"', "layout: 'tree' is not allowed; allowed is 'seed' or 'mrt-zk'."),
        (
            'ledger = "etcd://a:1/r"',
            "ledger: it is not a ZooKeeper's url; allowed is zookeeper://HOST:PORT/ROOT",
        ),
        ('ledger = "zookeeper://a/r"', "ledger: 'a' is not a server; allowed is zookeeper://HOST:PORT/ROOT"),
        ('ledger = "zookeeper://a:70000/r"', "ledger: 'a:70000' is not a server;"),
        ('ledger = "zookeeper://a:1,/r"', "ledger: '' is not a server;"),
        ('ledger = "zookeeper://a:1"', "ledger: '' is not a root;"),
        ('ledger = "zookeeper://a:1/"', "ledger: '/' is not a root;"),
        ('ledger = "zookeeper://a:1/r/../s"', "ledger: '/r/../s' is not a root;"),
        ('ledger = "zookeeper://a:1/zookeeper/x"', "ledger: the tree under /zookeeper is the server's own;"),
        ("ledger = 5", "ledger: 5 is not allowed; allowed is text."),
    ],
)
def test_a_mistake_names_the_key_and_what_is_allowed(setting: str, says: str) -> None:
    (line,) = mistakes(setting)
    assert line.startswith(f"queues.ingest.{says}")


def test_a_password_in_a_ledgers_url_is_not_repeated() -> None:
    (line,) = mistakes('ledger = "zookeeper://ann:s3cret@a:1/r"')
    assert "a name and password are not supported" in line
    assert "s3cret" not in line


def test_settings_survive_the_way_through_a_store() -> None:
    full = Settings(stages=INGEST, space=7, profiles=("a", "b"), ledger="zookeeper://a:1/r", layout="mrt-zk")
    for each in (full, Settings()):
        assert _read_settings(json.dumps(asdict(each)).encode()) == each


@pytest.mark.parametrize(
    ("text", "size_in_bytes"),
    [
        ("4096B", 4096),
        ("4096", 4096),
        (4096, 4096),
        ("1kB", 1_000),
        ("1KB", 1_000),
        ("1KiB", 1_024),
        ("1.5 MB", 1_500_000),
        ("2MiB", 2 << 20),
        ("200GB", 200_000_000_000),
        ("3GiB", 3 << 30),
        ("1TB", 10**12),
        ("0.5TiB", 1 << 39),
    ],
)
def test_a_size_is_a_number_with_a_unit(text: object, size_in_bytes: int) -> None:
    assert size.parse(text) == size_in_bytes


@pytest.mark.parametrize("text", ["", "GB", "1 PB", "1gb", "-1", "1e9", "nan", None, True, float("inf"), []])
def test_anything_else_is_no_size(text: object) -> None:
    with pytest.raises(ValueError, match='write one like "4096B"'):
        size.parse(text)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1_000, "1 kB"),
        (1_500_000, "1.5 MB"),
        (200_000_000_000, "200 GB"),
        (10**15, "1000 TB"),
    ],
)
def test_a_size_is_shown_in_the_largest_unit_that_it_fills(count: int, text: str) -> None:
    assert size.show(count) == text
