"""Older records: names, the bytes before the payload, and the three kinds of payload."""

import json

import pytest

from maitred.store.zookeeper.ledger import Ledger
from maitred.store.zookeeper.legacy import Name, Tally, properties, read_name, read_record, records
from maitred.store.zookeeper.session import Create

NEW, OLD = "mrtQ-02100000000003", "mrtQ-050000000007"
SECONDS, MILLISECONDS = 1_690_000_000, 1_690_000_000_123


def data(status: int, time: int, payload: bytes = b"{}") -> bytes:
    return bytes([status]) + time.to_bytes(8, "big", signed=True) + payload


def test_a_name_has_priority_flag_worker_and_sequence() -> None:
    assert read_name(NEW) == Name(2, high=True, worker=0, sequence=3)
    assert read_name(OLD) == Name(5, high=None, worker=None, sequence=7)


@pytest.mark.parametrize(
    "name", ["mrtQ-", "mrtQ-1", "jid0000000001", "mrtQ-02300000000003", "mrtQ-0210000000003x"]
)
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="not the name"):
        read_name(name)


def test_seconds_and_milliseconds_are_told_by_size() -> None:
    assert read_record(NEW, data(0, SECONDS)).at == SECONDS * 1_000_000
    assert read_record(NEW, data(0, MILLISECONDS)).at == MILLISECONDS * 1_000
    assert read_record(NEW, data(0, 0)).at == 0


@pytest.mark.parametrize(
    ("byte", "status", "state", "last"),
    [
        (0, "Pending", "pending", None),
        (1, "Consumed", "estimating", None),
        (2, "Deleted", "deleted", None),
        (3, "Failed", "failed", "estimating"),
        (4, "Completed", "completed", None),
        (5, "Held", "held", None),
    ],
)
def test_each_status_says_where_the_job_goes_on(byte: int, status: str, state: str, last: str | None) -> None:
    record = read_record(NEW, data(byte, SECONDS))
    assert (record.status, record.state, record.last) == (status, state, last)


@pytest.mark.parametrize(
    "spoilt", [b"", b"\0" * 8, data(6, SECONDS), data(255, 1), data(0, 1, b"{"), data(0, 1, b"<a>")]
)
def test_a_record_that_cannot_be_read_says_why(spoilt: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_record(NEW, spoilt)


def test_java_properties_are_read_with_all_their_ways_to_write() -> None:
    text = (
        "#Tue Aug 01 10:00:00 PDT 2023\n! a comment\n\n"
        "batchID=bid-1\nsubmitter : Ada Lovelace\n  title\tThe\\u0020Engine \\uD83D\\uDE80\n"
        "path=C:\\\\data\\n\nlong=one \\\n    two\nempty\nkey\\ with\\=signs=yes\r\nlast==x\n"
    )
    assert properties(text) == {
        "batchID": "bid-1",
        "submitter": "Ada Lovelace",
        "title": "The Engine 🚀",
        "path": "C:\\data\n",
        "long": "one two",
        "empty": "",
        "key with=signs": "yes",
        "last": "=x",
    }


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (b'{"a":{"b":[1]}}', {"a": {"b": [1]}}),
        (b"a=1\nb=caf\xc3\xa9", {"a": "1", "b": "café"}),
        (b"b=caf\xe9", {"b": "café"}),
        (b"", {}),
        (b"<m><url>x</url><n>1</n><n>2</n></m>", {"url": "x", "n": ["1", "2"]}),
        (b'<x:m xmlns:x="u"><x:a>1</x:a></x:m>', {"a": "1"}),
        (b"<m>text</m>", {"m": "text"}),
        (
            (
                b'<?xml version="1.0"?><!DOCTYPE properties SYSTEM "http://java.sun.com/dtd/properties.dtd">'
                b'<properties><entry key="a">1</entry></properties>'
            ),
            {"a": "1"},
        ),
    ],
)
def test_a_payload_is_properties_json_or_xml(payload: bytes, expected: object) -> None:
    assert read_record(OLD, data(0, SECONDS, payload)).payload == expected


def test_xml_with_entities_of_its_own_is_refused() -> None:
    bomb = b'<!DOCTYPE m [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><m>&b;</m>'
    with pytest.raises(ValueError, match="entities"):
        read_record(NEW, data(0, SECONDS, bomb))


async def test_records_under_a_parent_come_in_order_and_deleted_ones_are_counted(ledger: Ledger) -> None:
    parent = f"{ledger.tree.root}/ingest"
    nodes = {
        "mrtQ-05000000000001": data(0, SECONDS, b"job=first"),
        "mrtQ-02100000000002": data(3, MILLISECONDS, json.dumps({"job": "second"}).encode()),
        "mrtQ-050000000003": data(2, SECONDS),
        "mrtQ-99": data(0, SECONDS),
        "mrtQ-05000000000004": b"",
        "lock": b"",
    }
    await ledger.session.multi(
        [Create(parent), *(Create(f"{parent}/{name}", each) for name, each in nodes.items())]
    )
    tally = Tally()
    found = [record async for record in records(ledger.session, parent, tally)]
    assert [record.payload["job"] for record in found] == ["second", "first"]
    assert tally.counts == {"Pending": 1, "Failed": 1, "Deleted": 1}
    assert [node for node, _ in tally.faults] == ["mrtQ-05000000000004", "mrtQ-99"]
