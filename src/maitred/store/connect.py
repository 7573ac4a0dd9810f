"""Opens a store from its address.

unix:///run/valkey.sock                  a server on a unix socket (the embedded one, or yours)
valkey://[user:password@]host:port/db    a server, sentinels or a cluster (`maitred.address` has all forms)
memory://                                the reference, in this process
"""

from urllib.parse import urlsplit

from maitred.store.ledgered import LedgeredStores
from maitred.store.memory import MemoryStores
from maitred.store.port import Stores
from maitred.store.valkey.store import ValkeyStores


def connect(url: str) -> Stores:
    """Give the stores at an address, connecting when first used; ConfigError if it is not one."""
    lines: Stores = MemoryStores() if urlsplit(url).scheme == "memory" else ValkeyStores(url)
    return LedgeredStores(lines)
