"""A job's identity: a hash of its key and response address.

Each part goes in with its length before it, so that no two different pairs can be read as the same text.
"""

from base64 import b64encode
from hashlib import blake2b


def job_id(key: str, response_url: str | None = None) -> str:
    """Give the id of the job with this key and response address: 24 characters, safe in a path.

    No address and an empty one are the same.
    """
    first, second = key.encode(), (response_url or "").encode()
    lengths = len(first).to_bytes(4, "big"), len(second).to_bytes(4, "big")
    digest = blake2b(b"".join((lengths[0], first, lengths[1], second)), digest_size=18)
    # A dash could come first, and a command line would take the id for an option.
    return b64encode(digest.digest(), altchars=b"_.").decode()
