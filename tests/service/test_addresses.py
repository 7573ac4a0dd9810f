"""Addresses that others name never lead into a private network, unless that is allowed."""

import asyncio
import itertools
import socket
from ipaddress import ip_address
from typing import Any

import httpx
import pytest

from maitred.service.addresses import PrivateAddress, checked_client, is_private
from maitred.service.fetch import FetchFailed, fetch
from tests.service.address import Reply, listening

PRIVATE = [
    "127.0.0.1",
    "10.1.2.3",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "0.0.0.0",
    "224.0.0.1",
    "255.255.255.255",
    "240.0.0.1",
    "192.0.2.1",
    "198.18.0.1",
    "::",
    "::1",
    "fe80::1",
    "fc00::1",
    "fec0::1",
    "ff02::1",
    "2001:db8::1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::a00:1",
    "64:ff9b:1::808:808",
    "2002:7f00:1::",
    "2002:c0a8:101::1",
    "2001::1",
    "::ffff:0:7f00:1",
]
PUBLIC = [
    "8.8.8.8",
    "93.184.216.34",
    "2606:4700::1111",
    "::ffff:8.8.8.8",
    "64:ff9b::808:808",
    "2002:808:808::1",
]


@pytest.mark.parametrize("text", PRIVATE)
def test_private_addresses_are_known_in_all_their_forms(text: str) -> None:
    assert is_private(ip_address(text))


@pytest.mark.parametrize("text", PUBLIC)
def test_public_addresses_are_not_taken_for_private(text: str) -> None:
    assert not is_private(ip_address(text))


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "[::1]", "0x7f.1", "2130706433", "[::ffff:127.0.0.1]"]
)
async def test_a_private_address_is_refused_before_anybody_is_connected(host: str) -> None:
    async with listening() as there, checked_client(private=False) as client:
        with pytest.raises((PrivateAddress, httpx.ConnectError)):
            await client.get(f"http://{host}:{there.port}/")
        assert there.requests == []


async def test_allowed_private_addresses_are_reached_by_their_name() -> None:
    async with listening() as there, checked_client(private=True) as client:
        there.at("/", Reply(body=b"here"))
        answer = await client.get(f"http://localhost:{there.port}/")
        assert answer.content == b"here"
        assert there.requests[0].headers["host"] == f"localhost:{there.port}"


async def test_the_connection_goes_to_the_address_that_was_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that is public when it is checked and private a moment later leads nowhere private."""
    asked: list[str] = []
    connected: list[Any] = []
    loop = asyncio.get_running_loop()

    async def lookup(host: str, port: int, **_: Any) -> list[Any]:
        asked.append(host)
        address = "192.0.2.1" if len(asked) == 1 else "127.0.0.1"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    async def connect(_: Any, request: httpx.Request) -> httpx.Response:
        connected.append((request.url.host, request.headers["host"], request.extensions["sni_hostname"]))
        return httpx.Response(200)

    monkeypatch.setattr(loop, "getaddrinfo", lookup, raising=False)
    monkeypatch.setattr(httpx.AsyncHTTPTransport, "handle_async_request", connect)
    monkeypatch.setattr(
        "maitred.service.addresses.is_private", lambda address: str(address).startswith("127")
    )
    async with checked_client(private=False) as client:
        await client.get("https://rebinding.example/")
    assert asked == ["rebinding.example"]
    assert connected == [("192.0.2.1", "rebinding.example", "rebinding.example")]


async def test_a_redirect_into_a_private_network_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async with listening() as there:
        url = there.at("/", Reply(302, headers=(f"Location: http://localhost:{there.port}/secret",)))
        # The first address counts as public here, so that there is a public one on loopback.
        later = itertools.count()
        monkeypatch.setattr("maitred.service.addresses.is_private", lambda _: next(later) > 0)
        with pytest.raises(FetchFailed, match="private network") as caught:
            await fetch(url, private=False)
        assert not caught.value.again
        assert [request.path for request in there.requests] == ["/"]
