"""Opens a store from its address.

unix:///run/valkey.sock          a server on a unix socket (the embedded one, or yours)
valkey://[user:password@]host:port/db    (also redis://, and valkeys:// or rediss:// over TLS)
memory://                        the reference, in this process
"""

from urllib.parse import unquote, urlsplit, urlunsplit

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from maitred.errors import ConfigError
from maitred.store.memory import MemoryStores
from maitred.store.port import Stores
from maitred.store.valkey.store import ValkeyStores

_SCHEMES = {"valkey": "redis", "redis": "redis", "valkeys": "rediss", "rediss": "rediss"}
CONNECT_PATIENCE = 5.0


def connect(url: str) -> Stores:
    """Give the stores at an address, connecting when first used; ConfigError if it is not one."""
    parts = urlsplit(url)
    if parts.scheme == "memory":
        return MemoryStores()
    if parts.scheme == "unix":
        return ValkeyStores(
            Redis(
                unix_socket_path=unquote(parts.path),
                protocol=2,
                socket_connect_timeout=CONNECT_PATIENCE,
                retry=Retry(NoBackoff(), 0),
            )
        )
    if parts.scheme in _SCHEMES:
        address = urlunsplit(parts._replace(scheme=_SCHEMES[parts.scheme]))
        return ValkeyStores(
            Redis.from_url(
                address,
                protocol=2,
                socket_connect_timeout=CONNECT_PATIENCE,
                retry=Retry(NoBackoff(), 0),
                health_check_interval=30,
            )
        )
    raise ConfigError(f"a store's address begins with unix://, valkey://, redis:// or memory://, not {url!r}")
