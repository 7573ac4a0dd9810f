"""Names and addresses of the tree, without a server."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maitred.core.batch import BatchState
from maitred.errors import ConfigError
from maitred.store.zookeeper.payloads import capitalised, read_state, read_time, write_time
from maitred.store.zookeeper.tree import (
    LAYOUTS,
    MRT_ZK,
    SEED,
    Address,
    Layout,
    entry_name,
    escape,
    read_entry,
    unescape,
)


@given(st.text())
def test_any_text_is_a_safe_name_and_reads_back(text: str) -> None:
    node = escape(text)
    assert unescape(node) == text
    assert node
    assert node not in (".", "..")
    assert node.isascii()
    assert node.isprintable()
    assert "/" not in node


@given(st.text(alphabet="%._/:2E ", max_size=5), st.text(alphabet="%._/:2E ", max_size=5))
def test_different_texts_have_different_names(one: str, other: str) -> None:
    assert (escape(one) == escape(other)) == (one == other)


def test_plain_names_stay_as_they_are() -> None:
    for name in ("5d9c7b8e-0000-4000-8000-123456789abc", "images", "a_b.c"):
        assert escape(name) == name


@pytest.mark.parametrize(("priority", "pp"), [(0, "00"), (5, "05"), (99, "99"), (105, "99"), (-1, "00")])
def test_an_entry_has_two_digits_of_the_priority(priority: int, pp: str) -> None:
    name = entry_name(priority, "jid0000000012")
    assert name == f"{pp}-jid0000000012"
    assert read_entry(name) == "jid0000000012"


@pytest.mark.parametrize("name", ["", "jid0000000012", "5-jid0000000012", "05-bid0000000012", "05-jid12"])
def test_other_names_are_no_entries(name: str) -> None:
    assert read_entry(name) is None


def test_an_address_names_servers_and_root() -> None:
    assert Address.read("zookeeper://a:2181,b,10.0.0.1:2182/merritt/x") == (
        "a:2181,b,10.0.0.1:2182",
        "/merritt/x",
    )


@pytest.mark.parametrize(
    "url",
    [
        "", "a:2181/root", "valkey://a/root", "zookeeper:///root", "zookeeper://a", "zookeeper://a/",
        "zookeeper://a,/root", "zookeeper://a/r//x", "zookeeper://a/..", "zookeeper://a/zookeeper",
        "zookeeper://a b/root", "zookeeper://a/ro\not", "zookeeper://a/root/",
    ],
)  # fmt: skip
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ConfigError):
        Address.read(url)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=list(LAYOUTS))
def test_times_read_back(layout: Layout) -> None:
    at = 1_700_000_000_123_456
    precision = 1_000_000 if layout is MRT_ZK else 1
    assert read_time(write_time(layout, at)) == at // precision * precision


@pytest.mark.parametrize("text", ["", "soon", None, 7, "2023-99-99"])
def test_what_is_no_time_is_none(text: object) -> None:
    assert read_time(text) == 0


def test_every_state_reads_back_from_its_capitalised_name() -> None:
    assert capitalised("update-reporting") == "UpdateReporting"
    for state in BatchState:
        assert read_state(capitalised(state), BatchState) == state
        assert read_state(state.value, BatchState) == state
    with pytest.raises(ValueError, match="no state"):
        read_state("Dancing", BatchState)


@pytest.mark.parametrize(
    ("state", "seed", "mrt_zk"),
    [
        ("pending", "pending", "batch-processing"),
        ("held", "held", "batch-processing"),
        ("estimating", "processing", "batch-processing"),
        ("notify", "processing", "batch-processing"),
        ("failed", "failed", "batch-failed"),
        ("completed", "completed", "batch-completed"),
        ("deleted", "deleted", "batch-deleted"),
    ],
)
def test_each_state_has_its_bucket(state: str, seed: str, mrt_zk: str) -> None:
    assert (SEED.bucket(state), MRT_ZK.bucket(state)) == (seed, mrt_zk)
