"""Manifests: rows by name, or faults by line, and never anything else."""

import csv
import io

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from maitred.service.digest import ALGORITHMS, DigestMismatch, check_digest, digest_of
from maitred.service.manifests import (
    MOST_FAULTS,
    BadManifest,
    LineFault,
    ManifestRow,
    parse_manifest,
    read_manifest,
)

MD5 = "49afbd86a1ca9f34b677a3f09655eae9"
SHA256 = "E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855"
BATCH_FIELDS = (
    "#%fields | nfo:fileUrl | nfo:hashAlgorithm | nfo:hashValue | nfo:fileSize | nfo:fileLastModified | "
    "nfo:fileName | mrt:primaryIdentifier | mrt:localIdentifier | mrt:creator | mrt:title | mrt:date"
)


def checkm(*lines: str, end: str = "#%eof\n") -> bytes:
    return "\n".join(("#%checkm_0.7", *lines, end)).encode()


def columns(payload: bytes) -> list[dict[str, str | int]]:
    return [row.columns for row in parse_manifest(payload)]


def faults(payload: bytes) -> list[str]:
    with pytest.raises(BadManifest) as caught:
        parse_manifest(payload)
    return [str(fault) for fault in caught.value.faults]


def test_a_checkm_row_has_its_columns_by_clear_names() -> None:
    payload = checkm(f"http://a.org/4.jpg | md5 | {MD5} | 1024 | 2026-11-15T20:55:00Z | four.jpg")
    assert columns(payload) == [
        {
            "url": "http://a.org/4.jpg",
            "digest_algorithm": "md5",
            "digest": MD5,
            "size": 1024,
            "last_modified": "2026-11-15T20:55:00Z",
            "name": "four.jpg",
        }
    ]


def test_a_batch_manifest_names_what_an_object_is() -> None:
    payload = checkm(
        "#%profile | http://a.org/registry/ingest/manifest/batch",
        "#%prefix | nfo: | http://a.org/nfo#",
        BATCH_FIELDS,
        "# a comment",
        "",
        "https://a.org/b.zip | SHA-256 | "
        + SHA256
        + " | | | b.zip | ark:/1 | l1; l2 | A. Lee | 100%25 %7C | 2026",
    )
    assert parse_manifest(payload) == [
        ManifestRow(
            7,
            {
                "url": "https://a.org/b.zip",
                "digest_algorithm": "sha256",
                "digest": SHA256.lower(),
                "name": "b.zip",
                "primary_id": "ark:/1",
                "local_id": "l1; l2",
                "who": "A. Lee",
                "what": "100% |",
                "when": "2026",
            },
        )
    ]


def test_fields_may_be_in_any_order_be_addresses_or_be_unknown() -> None:
    payload = checkm(
        "#%FIELDS | http://a.org/nfo#fileName | x:shelf | nfo:fileurl", "a.txt | 9 | http://a.org/"
    )
    assert columns(payload) == [{"name": "a.txt", "shelf": "9", "url": "http://a.org/"}]


def test_a_checkm_line_may_end_early_and_addresses_stay_encoded() -> None:
    assert columns(checkm("http://a.org/%7Ea%20b")) == [{"url": "http://a.org/%7Ea%20b"}]
    assert columns(checkm("http://a.org/1 | | | | | | |")) == [{"url": "http://a.org/1"}]
    assert columns(checkm("http://a.org/1|||||50%ZZ %ff")) == [{"url": "http://a.org/1", "name": "50%ZZ %ff"}]


def test_a_byte_order_mark_and_other_line_ends_do_not_matter() -> None:
    payload = b"\xef\xbb\xbf" + checkm("http://a.org/1 | | | | | é\u2028x").replace(b"\n", b"\r\n")
    assert columns(payload) == [{"url": "http://a.org/1", "name": "é\u2028x"}]
    assert columns(b"\xef\xbb\xbfa,b\r\n1,2\r\n") == [{"a": "1", "b": "2"}]


def test_a_manifest_without_rows_is_no_fault_but_an_empty_one_is() -> None:
    assert parse_manifest(checkm()) == []
    assert parse_manifest(b"a,b\n") == []
    for payload in (b"", b"\xef\xbb\xbf", b" \r\n\n"):
        assert faults(payload) == ["line 1: the manifest is empty"]


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("| md5 | " + MD5, "has too few columns: the address is missing"),
        ("a.txt", "'a.txt' is not an http or https address"),
        ("ftp://a.org/", "'ftp://a.org/' is not an http or https address"),
        ("http://", "'http://' is not an http or https address"),
        ("http://[::1", "'http://[::1' is not an http or https address"),
        ("http://a:99999/", "'http://a:99999/' is not an http or https address"),
        ("http://a b/", "'http://a b/' is not an http or https address"),
        (
            "@http://a/",
            "includes another manifest ('@http://a/'), which is not supported: list its rows here",
        ),
        (
            "http://a/ | md6 | 00",
            f"the digest algorithm 'md6' is not one of {', '.join(ALGORITHMS)}",
        ),
        ("http://a/ | md5 | " + MD5[1:], "the md5 digest has 31 characters instead of 32"),
        ("http://a/ | md5 | g" + MD5[1:], f"the md5 digest {'g' + MD5[1:]!r} is not hexadecimal"),
        ("http://a/ | md5", "has too few columns: the md5 digest is missing"),
        ("http://a/ | | " + MD5, "has a digest without its algorithm"),
        ("http://a/ | | | -1", "the size '-1' is not a whole number of bytes"),
        ("http://a/ | | | ٣", "the size '٣' is not a whole number of bytes"),
        (
            "http://a/ | | | 99999999999999999999",
            "the size '99999999999999999999' is not a whole number of bytes",
        ),
        ("http://a/ | | | | | a | b", "has 7 columns; the manifest has 6"),
        ("http://a/\0", "holds a zero character"),
    ],
)
def test_a_bad_line_has_its_number_and_what_is_wrong(line: str, fault: str) -> None:
    assert faults(checkm("http://a.org/good", line)) == [f"line 3: {fault}"]


@pytest.mark.parametrize(
    ("payload", "fault"),
    [
        (b"#%checkm_0.1\n", "line 1: must be #%checkm_0.7, not '#%checkm_0.1'"),
        (b"#%checkm_0.7\nhttp://a/\xff\n", "line 2: is not UTF-8: the byte at 10 belongs to no character"),
        (checkm("#%fields | nfo:filename"), "line 2: #%fields has no nfo:fileurl"),
        (checkm("#%fields | nfo:fileurl | | x"), "line 2: #%fields has no name for column 2"),
        (checkm("#%fields | nfo:fileurl | FileURL"), "line 2: #%fields names 'url' twice"),
        (checkm("#%fields | nfo:fileurl", "#%fields | nfo:fileurl"), "line 3: is a second #%fields"),
        (checkm("http://a/", "#%fields | nfo:fileurl"), "line 3: #%fields comes after rows"),
        (checkm("#%eof", "http://a/", end=""), "line 3: comes after #%eof"),
        (
            checkm("http://a/", end="http://b/"),
            "line 3: ends without a line end, and there is no #%eof: the manifest may have been cut off",
        ),
        (b"a,a\n1,2\n", "line 1: names 'a' twice"),
        (b"a,\n1,2\n", "line 1: has no name for column 2"),
        (b"a, b\n1,2\n", "line 1: the name ' b' of column 2 begins or ends with a blank"),
        (b"a,b\n1\n", "line 2: has too few columns: 1 instead of 2"),
        (b"a,b\n1,2,3\n", "line 2: has too many columns: 3 instead of 2"),
        (b'a,b\n"1,2\n', "line 2: is not CSV: unexpected end of data"),
        (b'a,b\n"1"x,2\n3,4\n', "line 2: is not CSV: ',' expected after '\"'"),
        (b"a,b\n1,\xff\n", "line 2: is not UTF-8"),
        (b"a,b\n1,\0\n", "line 2: holds a zero character"),
    ],
)
def test_a_bad_header_or_frame_is_one_fault(payload: bytes, fault: str) -> None:
    assert faults(payload) == [fault]


def test_every_bad_line_is_told_up_to_a_bound() -> None:
    assert faults(checkm("a | md5 | 1 | x", "http://a/", "b")) == [
        "line 2: 'a' is not an http or https address",
        "line 2: the md5 digest has 1 characters instead of 32",
        "line 2: the size 'x' is not a whole number of bytes",
        "line 4: 'b' is not an http or https address",
    ]
    assert len(faults(checkm(*["x"] * 1000))) == MOST_FAULTS
    assert faults(b"a,b\n1\n1,2\n1,\xff\n1,2,3\n")[::2] == [
        "line 2: has too few columns: 1 instead of 2",
        "line 5: has too many columns: 3 instead of 2",
    ]


def test_a_line_of_ten_megabytes_is_a_fault_and_not_quoted() -> None:
    for payload in (checkm("http://a/" + "x" * 10_000_000), b"a\n" + b"x" * 10_000_000 + b"\n"):
        [fault] = faults(payload)
        assert fault.startswith("line 2: has 100000")
        assert len(fault) < 100
    [fault] = faults(checkm("x" * 100_000))
    assert len(fault) < 200


def test_a_quoted_value_may_hold_anything() -> None:
    assert parse_manifest(b'a,b\r\n"x ""y"", z","1\r\n2"\r\n3,4') == [
        ManifestRow(3, {"a": 'x "y", z', "b": "1\r\n2"}),
        ManifestRow(4, {"a": "3", "b": "4"}),
    ]


def test_a_hundred_thousand_rows_are_read_one_by_one() -> None:
    payload = checkm(*[f"http://a.org/{n} | md5 | {MD5} | {n} | | n{n}" for n in range(100_000)])
    first = next(read_manifest(payload))
    assert isinstance(first, ManifestRow)
    assert first.columns["name"] == "n0"
    assert sum(1 for row in read_manifest(payload) if isinstance(row, ManifestRow)) == 100_000


NAMES = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=8
).filter(lambda name: name == name.strip())
VALUES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[str], list[list[str]]]:
    names = draw(
        st.lists(NAMES, min_size=1, max_size=4, unique=True).filter(
            lambda names: not names[0].startswith(("#%", "\ufeff"))
        )
    )
    return names, draw(st.lists(st.lists(VALUES, min_size=len(names), max_size=len(names)), max_size=8))


@given(tables())
def test_what_is_written_as_csv_reads_back(table: tuple[list[str], list[list[str]]]) -> None:
    names, rows = table
    text = io.StringIO(newline="")
    csv.writer(text, quoting=csv.QUOTE_ALL).writerows([names, *rows])
    found = columns(text.getvalue().encode())
    assert found == [dict(zip(names, row, strict=True)) for row in rows]


@given(st.one_of(st.binary(), st.binary().map(b"#%checkm_0.7\n".__add__), st.text().map(str.encode)))
@example(b"#%fields")
@example(b'"')
@example(b"a\rb\n")
def test_any_bytes_give_rows_or_faults(payload: bytes) -> None:
    for item in read_manifest(payload):
        assert isinstance(item, ManifestRow | LineFault)
        assert item.line >= 1


@given(
    st.lists(
        st.sampled_from(["http://a/", "|", " ", "md5", MD5, "7", "#%fields", "#%eof", "nfo:fileurl", "\n"])
    )
)
def test_any_pieces_of_checkm_give_rows_or_faults(pieces: list[str]) -> None:
    for item in read_manifest(b"#%checkm_0.7\n" + "".join(pieces).encode()):
        assert isinstance(item, ManifestRow | LineFault)


@pytest.mark.parametrize(
    "algorithm", ["md5", "SHA-1", "sha224", "sha-256", "sha384", "sha512", "adler-32", "crc32"]
)
def test_a_digest_that_does_not_match_names_both(algorithm: str) -> None:
    digest = digest_of(algorithm, b"content")
    check_digest(algorithm, digest.upper(), b"content")
    with pytest.raises(DigestMismatch) as caught:
        check_digest(algorithm, digest, b"other")
    assert digest in str(caught.value)
    assert digest_of(algorithm, b"other") in str(caught.value)


def test_an_unknown_digest_algorithm_is_refused() -> None:
    with pytest.raises(KeyError, match="is not one of md5"):
        digest_of("md2", b"")
