"""Every node of the ledger's tree: two layouts as tables of names, and the paths under one root.

An item (a batch, a job) is an empty node with facts as children. Its id comes from a sequential create: a
prefix and ten digits, so that ids sort by age. An index entry `PP-JID` has two digits of the priority before
the id, so that names sort in the order in which jobs should go. Names that come from people are escaped,
reversibly.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple
from urllib.parse import quote, unquote

from maitred.core.stages import COMPLETED, FAILED, HELD, PENDING
from maitred.errors import ConfigError

BID, JID = "bid", "jid"
DELETED = "deleted"
EMPTY = "%"
FACTS = ("status", "bid", "configuration", "place", "priority", "space_needed", "identifiers")
ENDED = frozenset({FAILED, COMPLETED, DELETED})
UNFINISHED = (PENDING, HELD, "processing")
_ENTRY = re.compile(r"(\d\d)-(jid\d{10})")
_ITEM = re.compile(r"(bid|jid)\d{10}")
_HOST = re.compile(r"[^\s,/:@?#\[\]]+(?::\d{1,5})?")


@dataclass(frozen=True, slots=True)
class Layout:
    """One way to name things in the tree. What the two have in common is in `Tree`.

    `buckets` gives the node in which a batch keeps its jobs of each kind. `submission` and `configuration`
    are the fields that readers of the layout look for; more may be there. In a layout that `keeps_deleted` a
    deleted job stays, in a state of its own; elsewhere only its name stays, with its batch.
    """

    name: Literal["seed", "mrt-zk"]
    states: tuple[str, ...]
    buckets: dict[str, str]
    submission: tuple[str, ...]
    configuration: tuple[str, ...]
    modified: str
    local_time: bool
    says_message: bool
    late_buckets: bool
    keeps_deleted: bool

    @property
    def made_buckets(self) -> tuple[str, ...]:
        """The buckets that a batch has from the first; one that is only ours is made when it is needed."""
        return tuple(dict.fromkeys(node for node in self.buckets.values() if node != DELETED))

    def bucket(self, state: str) -> str:
        """Name the bucket of a batch that a job in this state is in."""
        return self.buckets[state if state in self.buckets else "processing"]


_ERC = ("erc_what", "erc_who", "erc_when", "erc_where")
SEED = Layout(
    name="seed",
    states=(),
    buckets={kind: kind for kind in (*UNFINISHED, FAILED, COMPLETED, DELETED)},
    submission=("profile_name", "submitter", "payload_filename", *_ERC, "type", "submission_mode"),
    configuration=(
        "batch_id", "profile_name", "submitter", "payload_url", "payload_type", "response_type",
        "working_dir", "local_id",
    ),
    modified="last_modification_date",
    local_time=False,
    says_message=False,
    late_buckets=False,
    keeps_deleted=False,
)  # fmt: skip
MRT_ZK = Layout(
    name="mrt-zk",
    states=("storing", DELETED),
    buckets={
        **dict.fromkeys(UNFINISHED, "batch-processing"),
        **{kind: f"batch-{kind}" for kind in (FAILED, COMPLETED, DELETED)},
    },
    submission=("batchID", *SEED.submission),
    configuration=("profile_name", "submitter", "payload_url", "payload_type", "response_type", "local_id"),
    modified="last_modified",
    local_time=True,
    says_message=True,
    late_buckets=True,
    keeps_deleted=True,
)
LAYOUTS = {layout.name: layout for layout in (SEED, MRT_ZK)}


class Tree:
    """The paths of one queue's tree."""

    def __init__(self, root: str, layout: Layout) -> None:
        self.root = root.rstrip("/")
        self.layout = layout
        self.batches = f"{self.root}/batches"
        self.jobs = f"{self.root}/jobs"
        self.uuids = f"{self.root}/batch-uuids"
        self.states = f"{self.jobs}/states"
        self.holds = f"{self.root}/holds"

    def batch(self, bid: str, *parts: str) -> str:
        """Give the path of a batch, or of something under it."""
        return "/".join((self.batches, bid, *parts))

    def job(self, jid: str, *parts: str) -> str:
        """Give the path of a job, or of something under it."""
        return "/".join((self.jobs, jid, *parts))

    def uuid(self, external_id: str) -> str:
        """Give the path of the node that finds a batch by its external id."""
        return f"{self.uuids}/{escape(external_id)}"

    def state(self, state: str) -> str:
        """Give the path of the index of jobs in a state."""
        return f"{self.states}/{escape(state)}"

    def entry(self, state: str, priority: int, jid: str) -> str:
        """Give the path of a job's one index entry."""
        return f"{self.state(state)}/{entry_name(priority, jid)}"

    def bucket(self, bid: str, state: str, jid: str) -> str:
        """Give the path of a job in the bucket of its batch."""
        return self.batch(bid, "states", self.layout.bucket(state), jid)

    def key(self, bid: str, id: str) -> str:
        """Give the path of the node that says which job has a key of the batch, by the job's id."""
        return self.batch(bid, "keys", escape(id))

    def hold(self, kind: str, name: str) -> str:
        """Give the path of the flag that holds a submitter or a profile."""
        return f"{self.holds}/{kind}/{escape(name)}"

    def index_states(self, stages: tuple[str, ...]) -> tuple[str, ...]:
        """Name every state that has an index in a queue with these stages."""
        return tuple(dict.fromkeys((PENDING, HELD, *stages, *self.layout.states, FAILED, COMPLETED)))


def escape(name: str) -> str:
    """Write any text as a safe name of a node: no slash, no control character, not empty, not dots alone."""
    if not name:
        return EMPTY
    safe = quote(name, safe="", errors="surrogatepass")
    return safe.replace(".", "%2E") if not safe.strip(".") else safe


def unescape(node: str) -> str:
    """Read what `escape` wrote."""
    return "" if node == EMPTY else unquote(node, errors="surrogatepass")


def entry_name(priority: int, jid: str) -> str:
    """Name an index entry; a priority beyond what two digits say counts as the nearest."""
    return f"{min(99, max(0, priority)):02d}-{jid}"


def read_entry(name: str) -> str | None:
    """Give the job of an index entry, None if the name is not one."""
    found = _ENTRY.fullmatch(name)
    return found[2] if found else None


def is_item(name: str, prefix: str) -> bool:
    """Tell whether a name is the id of a batch or a job."""
    found = _ITEM.fullmatch(name)
    return bool(found) and name.startswith(prefix)


def item_names(paths: Sequence[object] | None) -> list[str]:
    """Give the ids of items that were made, from their paths."""
    return [str(path).rpartition("/")[2] for path in paths or ()]


class Address(NamedTuple):
    """Where a ledger is: the servers, and the root of its tree there."""

    hosts: str
    root: str

    @classmethod
    def read(cls, url: str) -> "Address":
        """Read `zookeeper://a:2181,b:2181/root`; ConfigError if it is not like that."""
        scheme, separator, rest = url.partition("://")
        hosts, _, root = rest.partition("/")
        parts = root.split("/")
        if (
            (scheme, separator) != ("zookeeper", "://")
            or not all(_HOST.fullmatch(host) for host in hosts.split(","))
            or not {"", ".", ".."}.isdisjoint(parts)
            or parts[0] == "zookeeper"
            or not root.isprintable()
        ):
            raise ConfigError(f"{url!r} is no ledger: it must be like zookeeper://host:2181,host:2181/root")
        return cls(hosts, f"/{root}")
