"""Digests: which ones are known, how their names are spelt, and whether content has the one that was told."""

import hashlib
import zlib
from typing import NoReturn

# The length of each digest in hexadecimal.
ALGORITHMS = {
    "md5": 32,
    "sha1": 40,
    "sha224": 56,
    "sha256": 64,
    "sha384": 96,
    "sha512": 128,
    "adler32": 8,
    "crc32": 8,
}


class DigestMismatch(Exception):
    """The content does not have the digest that was told."""

    def __init__(self, algorithm: str, told: str, found: str) -> None:
        """Name both digests."""
        self.algorithm, self.told, self.found = algorithm, told, found
        super().__init__(f"the {algorithm} digest is {found}, not {told} as was told")


def algorithm_name(text: str) -> str:
    """Give an algorithm's name in one spelling: `SHA-256` is `sha256`."""
    return "".join(filter(str.isalnum, text.lower()))


def digest_of(algorithm: str, content: bytes) -> str:
    """Give the digest of content, in hexadecimal; KeyError if the algorithm is not known."""
    name = algorithm_name(algorithm)
    if name not in ALGORITHMS:
        _unknown(algorithm)
    if name == "adler32":
        return f"{zlib.adler32(content):08x}"
    if name == "crc32":
        return f"{zlib.crc32(content):08x}"
    return hashlib.new(name, content, usedforsecurity=False).hexdigest()


def check_digest(algorithm: str, told: str, content: bytes) -> None:
    """Raise `DigestMismatch` unless content has this digest; KeyError if the algorithm is not known."""
    found = digest_of(algorithm, content)
    if found != told.lower():
        raise DigestMismatch(algorithm_name(algorithm), told, found)


def _unknown(algorithm: str) -> NoReturn:
    raise KeyError(f"{algorithm!r} is not one of {', '.join(ALGORITHMS)}")
