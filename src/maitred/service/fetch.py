"""Getting a payload from an address: so much, for so long, or a sentence why not."""

import asyncio
from typing import Final

import httpx

from maitred.service.addresses import PrivateAddress, checked_client

MOST_BYTES: Final = 64 << 20
LONGEST: Final = 120.0
SILENCE: Final = 15.0
MOST_REDIRECTS: Final = 5


class FetchFailed(Exception):
    """The address did not give what was asked for.

    `again` tells whether it may do so later: nobody answered, or the server said that it could not just now.
    """

    def __init__(self, url: str, why: str, *, again: bool) -> None:
        """Say which address, and why."""
        self.url, self.why, self.again = url, why, again
        super().__init__(f"{url} {why}")


async def fetch(
    url: str,
    *,
    most_bytes: int = MOST_BYTES,
    longest: float = LONGEST,
    silence: float = SILENCE,
    private: bool = True,
) -> bytes:
    """Get what an http or https address has; `FetchFailed` if it is too much, too slow, or not there.

    Unless `private` addresses are allowed, one in a private network is refused, also as a redirect's end.
    """
    limits = httpx.Timeout(silence)
    try:
        async with (
            asyncio.timeout(longest),
            checked_client(
                private=private, timeout=limits, follow_redirects=True, max_redirects=MOST_REDIRECTS
            ) as client,
            client.stream("GET", url, headers={"accept-encoding": "identity"}) as answer,
        ):
            return await _read(url, answer, most_bytes)
    except TimeoutError:
        raise FetchFailed(url, f"did not answer in full within {longest:g} seconds", again=True) from None
    except PrivateAddress as error:
        raise FetchFailed(url, f"is refused: {error}", again=False) from None
    except httpx.TooManyRedirects:
        raise FetchFailed(url, f"redirects more than {MOST_REDIRECTS} times", again=False) from None
    except (httpx.UnsupportedProtocol, httpx.InvalidURL) as error:
        raise FetchFailed(url, f"is not an address that can be asked: {error}", again=False) from None
    except httpx.HTTPError as error:
        raise FetchFailed(url, f"did not answer: {_words(error)}", again=True) from None


async def _read(url: str, answer: httpx.Response, most_bytes: int) -> bytes:
    if answer.status_code != httpx.codes.OK:
        again = answer.status_code == httpx.codes.TOO_MANY_REQUESTS or answer.is_server_error
        raise FetchFailed(url, f"answered {answer.status_code} {answer.reason_phrase}".rstrip(), again=again)
    content = bytearray()
    # As it is sent: what was packed a few times over could be more than any limit in one step.
    async for part in answer.aiter_raw():
        content += part
        if len(content) > most_bytes:
            raise FetchFailed(url, f"has more than {most_bytes} bytes, which is the limit", again=False)
    return bytes(content)


def _words(error: Exception) -> str:
    """Say what an error says, or what it is: some of httpx's have no words."""
    if isinstance(error, httpx.TimeoutException):
        return "nothing came in time"
    return str(error) or type(error).__name__
