"""Fetching a payload: it is bounded in size, time and redirects, and each failure is a sentence."""

import gzip

import pytest

from maitred.service.fetch import MOST_REDIRECTS, FetchFailed, fetch
from tests.service.address import Reply, listening


async def failure(url: str, **limits: float) -> FetchFailed:
    with pytest.raises(FetchFailed) as caught:
        await fetch(url, **limits)  # type: ignore[arg-type]
    assert str(caught.value).startswith(url)
    return caught.value


async def test_what_an_address_has_is_fetched_whole() -> None:
    async with listening() as address:
        content = bytes(range(256)) * 1000
        assert await fetch(address.at("/m", Reply(body=content))) == content


async def test_redirects_are_followed_but_not_for_ever() -> None:
    async with listening() as address:
        address.at("/end", Reply(body=b"here"))
        once = address.at("/once", Reply(302, headers=("Location: /end",)))
        assert await fetch(once) == b"here"
        ring = address.at("/ring", Reply(302, headers=("Location: /ring",)))
        error = await failure(ring)
        assert f"redirects more than {MOST_REDIRECTS} times" in str(error)
        assert not error.again
        away = address.at("/away", Reply(302, headers=("Location: ftp://127.0.0.1/",)))
        assert "is not an address that can be asked" in str(await failure(away))


@pytest.mark.parametrize(
    ("status", "again"), [(404, False), (403, False), (204, False), (429, True), (503, True)]
)
async def test_another_answer_is_told_with_whether_it_may_change(status: int, again: bool) -> None:
    async with listening() as address:
        error = await failure(address.at("/m", Reply(status)))
        assert f"answered {status}" in str(error)
        assert error.again == again


async def test_more_than_is_allowed_is_not_read() -> None:
    async with listening() as address:
        url = address.at("/m", Reply(endless=b"x" * 65536))
        error = await failure(url, most_bytes=1_000_000)
        assert "has more than 1000000 bytes" in str(error)
        assert not error.again


async def test_an_address_that_does_not_answer_says_so() -> None:
    async with listening() as address:
        url = address.url
    error = await failure(url)
    assert "did not answer: " in str(error)
    assert error.again


async def test_a_server_that_keeps_silent_or_never_ends_is_not_waited_for() -> None:
    async with listening() as address:
        url = address.at("/m", Reply(endless=b"x"))
        assert "did not answer in full within" in str(await failure(url, longest=0.2, most_bytes=1 << 40))
        address.silent = True
        assert "did not answer: nothing came in time" in str(await failure(url, silence=0.05))


async def test_an_answer_that_is_not_http_is_a_failure_like_any_other() -> None:
    async with listening() as address:
        for raw in (b"SSH-2.0-x\r\n", b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"):
            url = address.at("/m", Reply(raw=raw))
            assert "did not answer: " in str(await failure(url))


async def test_content_that_is_packed_is_taken_as_it_is_sent_whatever_would_come_of_it() -> None:
    async with listening() as there:
        packed = gzip.compress(gzip.compress(b"\0" * 50_000_000))
        url = there.at("/m", Reply(body=packed, headers=("Content-Encoding: gzip, gzip",)))
        assert await fetch(url, most_bytes=1_000_000) == packed
        assert there.requests[0].headers["accept-encoding"] == "identity"
