"""Where the server is: named by hand, by the environment, or noted in the data directory by its starter."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from maitred.errors import ConfigError, ServerUnreachable

NOTE = "address"


@contextlib.contextmanager
def noted(data: Path, address: str) -> Iterator[None]:
    """Note a server's address in the data directory for as long as it serves; `ConfigError` if that fails."""
    note = data / NOTE
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
        note.write_text(f"{address}\n", "utf-8")
    except OSError as error:
        raise ConfigError(f"The address cannot be noted in {data}: {error.strerror}.") from error
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            # Another server may have been started on the directory since; its note is not ours to take.
            if note.read_text("utf-8").strip() == address:
                note.unlink()


def find_server(named: str | None, data: Path) -> str:
    """Give the server's address; `ServerUnreachable` if none is named and none is noted."""
    if named:
        return named if "://" in named else f"http://{named}"
    try:
        return (data / NOTE).read_text("utf-8").strip()
    except OSError:
        raise ServerUnreachable(
            f"No server is noted in {data}: start one with `maitred up`, "
            "or name it with --server or MAITRED_URL; --local asks the store itself."
        ) from None
