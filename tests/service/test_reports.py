"""Reports: what is told of each job, and that it reads back from every form."""

import re
import xml.etree.ElementTree as ET
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from maitred.core.batch import Batch, RowView
from maitred.core.job import Submitter
from maitred.service.messages import report_message
from maitred.service.report import NAMESPACE, Report, as_turtle, as_xml, last_told, literal, mark
from maitred.wire import ReportDocument, decode_json, encode_json

TEXT = st.text(max_size=30)


def batch(sequence: int = 0, fault: str = "", external_id: str = "x") -> Batch:
    made = Batch("bid0000000007", external_id, Submitter("user", "a"), "", b"", 1_000_000, 2_000_000)
    made.sequence, made.fault = sequence, fault
    return made


def row(
    id: str, state: str, reported: str = "", *, message: str = "", key: str = "k", local: str | None = None
) -> RowView:
    return RowView(id, encode_json({"key": key, "local_id": local}), state, message, reported)


def test_a_report_names_every_job_by_how_it_ended() -> None:
    report = Report(batch())
    marks = report.add(
        [row("a", "completed"), row("b", "failed", message="no disk"), row("c", "deleted", local="l")]
    )
    assert dict(marks) == {"a": "completed 1", "b": "failed 1", "c": "deleted 1"}
    assert report.changed
    assert report.document() == {
        "batch": "bid0000000007",
        "external_id": "x",
        "sequence": 1,
        "kind": "report",
        "at": "1970-01-01T00:00:02.000000Z",
        "state": "completed",
        "message": None,
        "completed": [{"id": "a", "key": "k", "local_id": None, "message": None}],
        "failed": [{"id": "b", "key": "k", "local_id": None, "message": "no disk"}],
        "deleted": [{"id": "c", "key": "k", "local_id": "l", "message": None}],
    }
    assert ReportDocument.model_validate(report.document()).sequence == 1


def test_an_update_report_tells_only_what_changed() -> None:
    report = Report(batch(sequence=1))
    rows = [
        row("a", "completed", "completed 1"),
        row("b", "completed", "failed 1"),
        row("c", "failed", "failed 1"),
        row("d", "deleted", "completed 1"),
        row("e", "deleted", "deleted 1"),
    ]
    assert dict(report.add(rows)) == {"b": "completed 2 failed", "d": "deleted 2 completed"}
    document = report.document()
    assert document["kind"] == "update-report"
    assert [[each["id"] for each in document[end]] for end in ("completed", "failed", "deleted")] == [
        ["b"],
        [],
        ["d"],
    ]


def test_an_update_report_without_change_says_so() -> None:
    report = Report(batch(sequence=1))
    assert report.add([row("a", "failed", "failed 1")]) == []
    assert not report.changed
    assert Report(batch()).changed, "the first report is told even without a job"


@pytest.mark.parametrize("sequence", [0, 1])
def test_a_report_that_was_begun_and_never_stored_is_begun_again(sequence: int) -> None:
    before = "failed 1" if sequence else ""
    first = Report(batch(sequence))
    marks = dict(first.add([row("a", "completed", before)]))
    second = Report(batch(sequence))
    assert dict(second.add([row("a", "completed", marks["a"])])) == marks
    assert second.document() == first.document()


@given(st.lists(st.sampled_from(["completed", "failed", "deleted"]), min_size=1))
def test_what_was_told_last_is_known_whatever_was_told_before(states: list[str]) -> None:
    reported, before = "", ""
    for number, state in enumerate(states, 1):
        reported = mark(state, number, before)
        assert last_told(reported, number) == state
        assert last_told(reported, number - 1) == before
        before = state


def test_a_message_of_ten_megabytes_is_cut() -> None:
    report = Report(batch())
    report.add([row("a", "failed", message="x" * 10_000_000)])
    assert len(encode_json(report.document())) < 20_000


def test_json_is_written_as_callbacks_are() -> None:
    document = Report(batch()).document()
    reported = batch(sequence=1)
    reported.submission, reported.report = b"{}", encode_json(document)
    told = decode_json(report_message("q", reported, "json").content)
    assert (told["type"], told["timestamp"]) == ("batch.reported", document["at"])
    assert told["data"]["report"] == document
    assert (told["data"]["id"], told["data"]["sequence"]) == (reported.id, 1)
    assert "run" not in told["data"]


def told(*texts: str) -> dict[str, Any]:
    report = Report(batch(fault=texts[0], external_id=texts[1]))
    report.add([row(f"id{n}", "failed", message=text, key=text, local=text) for n, text in enumerate(texts)])
    report.add([row("d", "deleted")])
    return report.document()


@given(TEXT, TEXT)
@example("<&>\"'", "]]>\r\n\t")
@example("\0\x0b\ufffe\x85", "é\U0001f37d")
def test_xml_reads_back(first: str, second: str) -> None:
    document = told(first, second)
    root = ET.fromstring(as_xml(document))

    def seen(text: str | None) -> str | None:
        valid = text and re.sub("[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]", "\ufffd", text)
        return valid if text is not None else None

    assert root.tag == f"{{{NAMESPACE}}}report"
    assert root.get("message") == seen(document["message"])
    assert root.get("sequence") == "1"
    for end in ("completed", "failed", "deleted"):
        jobs = root.findall(f"{{{NAMESPACE}}}{end}/{{{NAMESPACE}}}job")
        assert [dict(job.attrib) for job in jobs] == [
            {name: seen(value) for name, value in each.items() if value is not None} for each in document[end]
        ]


TOKEN = re.compile(
    r'(?P<iri><[^\x00-\x20<>"{}|^`\\]*>)|(?P<literal>"(?:[^\x22\x5C\x0A\x0D]|\\[tbnrf"\\]|\\u[0-9A-F]{4})*")'
    r"|(?P<name>m:[a-z_A-Z]+)|(?P<word>a|@prefix|m:)|(?P<mark>[;.])|(?P<blank>[ \n]+)"
)
ESCAPES = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", '"': '"', "\\": "\\"}


def triples(turtle: str) -> set[tuple[str, str, str]]:
    """Read the turtle that we write, as strictly as its grammar has it; anything else is an error."""
    tokens, at = [], 0
    while at < len(turtle):
        found = TOKEN.match(turtle, at)
        assert found, turtle[at : at + 40]
        at = found.end()
        if found.lastgroup != "blank":
            tokens.append(found[0])
    assert tokens[:4] == ["@prefix", "m:", f"<{NAMESPACE}>", "."]
    read, statement = set(), list[str]()
    for token in tokens[4:]:
        if token not in ".;":
            statement.append(token)
            continue
        subject, verb, value = statement
        read.add((subject, verb, value))
        statement = [subject] if token == ";" else []
    assert not statement
    return read


def unescaped(text: str) -> str:
    return re.sub(
        r"\\(?:u([0-9A-F]{4})|(.))", lambda m: chr(int(m[1], 16)) if m[1] else ESCAPES[m[2]], text[1:-1]
    )


@given(TEXT, TEXT)
@example('"\\', "\n\r\t\b\f\0\x7f")
@example('" . <x> a "', "\\u0041")
def test_turtle_reads_back(first: str, second: str) -> None:
    document = told(first, second)
    found = triples(as_turtle(document).decode())
    about = f"<{NAMESPACE}bid0000000007:1>"
    assert (about, "a", "m:Report") in found
    assert (about, "m:kind", '"report"') in found
    for end in ("completed", "failed", "deleted"):
        jobs = {value for subject, verb, value in found if (subject, verb) == (about, f"m:{end}")}
        assert jobs == {f"<{NAMESPACE}job:{each['id']}>" for each in document[end]}
        for each in document[end]:
            job = f"<{NAMESPACE}job:{each['id']}>"
            said = {
                verb: unescaped(value) for subject, verb, value in found if subject == job and verb != "a"
            }
            assert said == {f"m:{name}": value for name, value in each.items() if value is not None}


def test_a_literal_is_one_line_in_quotes() -> None:
    assert literal('a"b\\c\nd\x01') == '"a\\"b\\\\c\\nd\\u0001"'
