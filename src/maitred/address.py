"""Where a store is: reads its url.

    unix:///PATH                              a server on a unix socket; ?db=N for another database
    valkey://HOST:PORT/DB                     one server
    valkey+sentinel://HOST:PORT,…/NAME/DB     the primary that these sentinels name
    valkey+cluster://HOST:PORT,…              the cluster that these nodes are part of

`redis` is another word for `valkey`; `valkeys` and `rediss` are over TLS. `user:password@` stands before the
first host and is for the servers; sentinels that ask get `?sentinel_username=…&sentinel_password=…`. With
`?replicas=N` a change counts once so many replicas have it. A refusal never repeats the url: it may hold a
password.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from maitred.errors import ConfigError

ALLOWED = (
    "allowed are valkey://HOST:PORT/DB, valkey+sentinel://HOST:PORT,…/NAME/DB, valkey+cluster://HOST:PORT,…, "
    "with redis for valkey, or with valkeys or rediss over TLS, and unix:///PATH"
)
_TLS = {"valkey": False, "redis": False, "valkeys": True, "rediss": True}
_PORTS = {"": 6379, "sentinel": 26379, "cluster": 6379}
MOST_REPLICAS = 16
Kind = Literal["server", "sentinel", "cluster"]


@dataclass(frozen=True, slots=True)
class Address:
    """Where one server listens, and how to be let in."""

    path: str = ""
    host: str = ""
    port: int = 6379
    tls: bool = False
    username: str = ""
    password: str = ""
    database: int = 0

    def moved(self, host: str, port: int) -> "Address":
        """Give the address of another server that lets us in in the same way."""
        return replace(self, host=host, port=port)


@dataclass(frozen=True, slots=True)
class Site:
    """Where a store is: one server, one that sentinels know by its name, or a cluster.

    `server` is the server, or one like all of them, whose host is not known yet. `members` are the sentinels
    to ask, or the nodes of the cluster to begin with.
    """

    server: Address
    kind: Kind = "server"
    members: tuple[Address, ...] = ()
    name: str = ""
    replicas: int = 0

    @classmethod
    def read(cls, url: str) -> "Site":
        """Read a store's url; ConfigError if it is not one."""
        try:
            return _read(url)
        except ValueError as error:
            raise ConfigError(f"a store's url cannot be used: {error}") from None


def check(url: str) -> str:
    """Give a store's url back; ValueError with what is allowed if it is not one."""
    _read(url)
    return url


def _read(url: str) -> Site:
    parts = _split(url)
    base, _, kind = parts.scheme.partition("+")
    if parts.scheme != "unix" and (base not in _TLS or kind not in _PORTS or parts.scheme.endswith("+")):
        raise ValueError(f"{parts.scheme or 'no'}:// is not a known scheme; {ALLOWED}")
    user, _, password = parts.netloc.rpartition("@")[0].partition(":")
    like = Address(tls=_TLS.get(base, False), username=unquote(user), password=unquote(password))
    if parts.scheme == "unix":
        return _on_a_socket(parts, like)
    members = tuple(_members(parts, like, _PORTS[kind]))
    if kind == "sentinel":
        return _behind_sentinels(parts, like, members)
    options = _Options(parts.query, "replicas")
    database = _database(parts.path.strip("/"))
    if kind == "cluster":
        if database:
            raise ValueError(f"a cluster has the one database 0; {ALLOWED}")
        return Site(like, "cluster", members, replicas=options.replicas())
    if len(members) > 1:
        raise ValueError(f"more than one server is a valkey+sentinel:// or a valkey+cluster://; {ALLOWED}")
    return Site(replace(members[0], database=database), replicas=options.replicas())


def _on_a_socket(parts: SplitResult, like: Address) -> Site:
    options = _Options(parts.query, "replicas", "db")
    if not parts.path.strip("/"):
        raise ValueError(f"it does not say where the server is; {ALLOWED}")
    server = replace(like, path=unquote(parts.path), database=_database(options["db"]))
    return Site(server, replicas=options.replicas())


def _behind_sentinels(parts: SplitResult, like: Address, members: tuple[Address, ...]) -> Site:
    options = _Options(parts.query, "replicas", "sentinel_username", "sentinel_password")
    name, _, database = parts.path.strip("/").partition("/")
    if not name:
        raise ValueError(f"it does not say by which name the sentinels know the primary; {ALLOWED}")
    username, password = options["sentinel_username"], options["sentinel_password"]
    return Site(
        replace(like, database=_database(database)),
        "sentinel",
        tuple(replace(member, username=username, password=password) for member in members),
        unquote(name),
        options.replicas(),
    )


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError:
        # What it says may repeat a piece of a password.
        raise ValueError(f"it is not a url; {ALLOWED}") from None


def _members(parts: SplitResult, like: Address, port: int) -> Iterator[Address]:
    for member in parts.netloc.rpartition("@")[2].split(","):
        found = _split(f"//{member}")
        try:
            its_port = found.port
        except ValueError:
            raise ValueError(f"it is not a url: its port is no number from 1 to 65535; {ALLOWED}") from None
        if not found.hostname or its_port == 0:
            raise ValueError(f"it does not say where the server is; {ALLOWED}")
        yield like.moved(found.hostname, its_port or port)


def _database(text: str) -> int:
    if not text.isdecimal() and text:
        raise ValueError(f"the database has to be a number; {ALLOWED}")
    return int(text or 0)


class _Options(dict[str, str]):
    """What stands behind the question mark."""

    def __init__(self, query: str, *known: str) -> None:
        super().__init__(parse_qsl(query, keep_blank_values=True))
        if unknown := sorted(self.keys() - set(known)):
            raise ValueError(f"?{unknown[0]}= is not known here; known are {', '.join(known)}")

    def __missing__(self, name: str) -> str:
        return ""

    def replicas(self) -> int:
        """Give how many replicas must have a change before it counts."""
        text = self["replicas"] or "0"
        if not text.isdecimal() or int(text) > MOST_REPLICAS:
            raise ValueError(f"?replicas= has to be a whole number from 0 to {MOST_REPLICAS}")
        return int(text)
