"""What a stage handler uses to get a payload: fetched, and compared with what its manifest told of it."""

from maitred.errors import Transient
from maitred.service.digest import check_digest
from maitred.service.fetch import MOST_BYTES, FetchFailed
from maitred.service.fetch import fetch as get


class SizeMismatch(Exception):
    """The content is longer or shorter than was told."""

    def __init__(self, told: int, found: int) -> None:
        """Name both sizes."""
        self.told, self.found = told, found
        super().__init__(f"it has {found} bytes, not {told} as was told")


async def fetch(
    url: str,
    *,
    digest_algorithm: str = "",
    digest: str = "",
    size: int | str | None = None,
    most_bytes: int = MOST_BYTES,
) -> bytes:
    """Get what an address has, and compare it with what was told of it, named as in a manifest's row.

    An address that does not answer, or cannot just now, raises `Transient`: the job is tried again. What will
    not get better raises `FetchFailed`, `SizeMismatch` or `DigestMismatch`: the job fails, and says why.
    """
    try:
        content = await get(url, most_bytes=most_bytes)
    except FetchFailed as failed:
        if failed.again:
            raise Transient(str(failed)) from None
        raise
    if size not in (None, "") and len(content) != int(size or 0):
        raise SizeMismatch(int(size or 0), len(content))
    if digest:
        check_digest(digest_algorithm, digest, content)
    return content
