"""Where the store is: named by the caller, by the settings, or by the note that `maitred up` leaves."""

from pathlib import Path
from urllib.parse import quote

from maitred import config
from maitred.errors import StoreUnavailable
from maitred.store.connect import connect
from maitred.store.port import Stores
from maitred.store.valkey.embedded import note

DATA = Path(".maitred")


def find_store(store: str | Stores | None, data: Path = DATA) -> Stores:
    """Give the store that is meant; nothing is sent to it yet.

    Without a name it is `store.url` of `maitred.toml` or `MAITRED_STORE__URL`, and else the embedded one that
    runs on the data directory. Raises `ConfigError` for settings with mistakes, and `StoreUnavailable` if
    there is no such thing.
    """
    if store is not None and not isinstance(store, str):
        return store
    return connect(store or config.load().store.url or embedded_url(data))


def embedded_url(data: Path) -> str:
    """Give the url of the embedded store that another process runs on a data directory."""
    noted = note(data)
    if noted is None:
        raise StoreUnavailable(
            f"No store is named in maitred.toml or MAITRED_STORE__URL, and none runs on {data}; "
            "start one with `maitred up`."
        )
    return f"unix://{quote(str(noted['socket']))}"
