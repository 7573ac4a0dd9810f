"""Connections to addresses that others name: never to one that is private, unless that is allowed.

A name is looked up once, what it leads to is checked, and the connection goes to the very address that was
checked: a name that leads elsewhere a moment later gains nothing. Each redirect is a new request, and so is
checked as well.
"""

import asyncio
import socket
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Any

import httpx

Address = IPv4Address | IPv6Address

# Networks whose addresses stand for one of IPv4, and how many bits are to the right of it.
_TRANSLATED = (
    (IPv6Network("::ffff:0:0/96"), 0),
    (IPv6Network("64:ff9b::/96"), 0),
    (IPv6Network("2002::/16"), 80),
)
# Networks that stand for others in ways that cannot be looked through, or that never were the internet's.
_NEVER = tuple(
    map(IPv6Network, ("::/96", "::ffff:0:0:0/96", "64:ff9b:1::/48", "2001::/23", "fec0::/10", "5f00::/16"))
)


class PrivateAddress(httpx.RequestError):
    """The address leads into a private network, where nobody from outside may send this server."""


def is_private(address: Address) -> bool:
    """Tell whether an address is not one of the public internet's."""
    if isinstance(address, IPv6Address):
        for network, shift in _TRANSLATED:
            if address in network:
                return is_private(IPv4Address(int(address) >> shift & 0xFFFF_FFFF))
        if any(address in network for network in _NEVER):
            return True
    return (
        not address.is_global
        or address.is_private
        or address.is_multicast
        or address.is_reserved
        or address.is_link_local
        or address.is_loopback
        or address.is_unspecified
    )


class CheckedTransport(httpx.AsyncBaseTransport):
    """Sends requests to addresses that were checked."""

    def __init__(self, *, private: bool, **more: Any) -> None:
        self._private = private
        self._inner = httpx.AsyncHTTPTransport(trust_env=False, **more)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request to what its host's name leads to now; the first address that answers is taken."""
        host = request.url.host
        addresses = await self._lookup(request)
        for last, address in ((address is addresses[-1], address) for address in addresses):
            sent = httpx.Request(
                request.method,
                request.url.copy_with(host=str(address)),
                headers=request.headers,
                stream=request.stream,
                extensions={**request.extensions, "sni_hostname": host},
            )
            try:
                return await self._inner.handle_async_request(sent)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                if last:
                    error.request = request
                    raise
        raise httpx.ConnectError("the name leads nowhere", request=request)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()

    async def _lookup(self, request: httpx.Request) -> list[Address]:
        host, port = request.url.host, request.url.port or (443 if request.url.scheme == "https" else 80)
        try:
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise httpx.ConnectError(
                f"the name {host} cannot be looked up: {error}", request=request
            ) from None
        # A zone, as in fe80::1%eth0, is of no use to whoever is elsewhere.
        addresses = list(dict.fromkeys(ip_address(str(entry[4][0]).partition("%")[0]) for entry in found))
        if not self._private:
            addresses = [address for address in addresses if not is_private(address)]
        if found and not addresses:
            raise PrivateAddress(
                f"{host} is in a private network, which is not allowed here", request=request
            )
        return addresses


def checked_client(*, private: bool, **more: Any) -> httpx.AsyncClient:
    """Make a client whose requests go to checked addresses only; `private` ones too if that is allowed."""
    return httpx.AsyncClient(transport=CheckedTransport(private=private), trust_env=False, **more)
