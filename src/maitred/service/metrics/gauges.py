"""How the queues are at the moment of a scrape, read from the store, and who is at this server.

One look is good for a second, so that several scrapers cost the store no more than one. A store that does not
answer in time is down: then only that is shown, and what this server knows by itself.

There may be a thousand queues with twenty series each. So they are written down here, which takes a small
part of the time that samples of the library would.
"""

import asyncio
import time
from collections import Counter
from functools import lru_cache

from maitred.errors import MaitredError, StoreError
from maitred.service.desk import Desk
from maitred.service.document import class_name
from maitred.service.house_document import classes_of, slots_of
from maitred.store.port import Status

GOOD_FOR = 1.0
# So many queues are asked for at once, and so many seconds may the answer take.
AT_ONCE = 100
PATIENCE = 2.0

_GAUGES = {
    "store_up": ("1 if the store answers this server.", ()),
    "jobs": ("Versions of jobs that are kept, by state.", ("queue", "state")),
    "waiting": ("Jobs that wait in line.", ("queue",)),
    "waiting_by_class": ("The same by class, as this server foresees the line.", ("queue", "class")),
    "running": ("Jobs that run, by the class whose units they hold.", ("queue", "class")),
    "class_limit": ("How many jobs of a class and of longer ones may run.", ("queue", "class")),
    "slots": ("Slots of the live workers.", ("queue",)),
    "free_slots": ("Slots in which nothing runs.", ("queue",)),
    "workers": ("Live workers, by whether they take jobs or are draining.", ("queue", "state")),
    "paused": ("1 if the queue is paused.", ("queue",)),
    "holds": ("Holds of submitters, profiles and batches.", ("queue", "kind")),
    "space_bytes": ("The queue's space budget, where it has one.", ("queue",)),
    "space_used_bytes": ("What of it is taken.", ("queue",)),
    "watchers": ("Who watches jobs, batches and everything at this server.", ("queue", "kind")),
    "sessions": ("Clients that have a session at this server.", ("queue",)),
}
_COUNTERS = {
    "sessions_denied": ("Sessions that this server was asked for and denied.", ("queue", "reason")),
    "store_scripts": ("Scripts that the store's server has run, of all who use it.", ()),
    "store_script_seconds": ("Time that they took there.", ()),
}

_Rows = dict[str, list[tuple[tuple[str, ...], float]]]


class Gauges:
    """Reads with `look`, from the loop; writes down the last look at each scrape, from any thread."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._rows: _Rows = {}
        self._looked = float("-inf")
        self._looking: asyncio.Task[None] | None = None

    def write(self) -> bytes:
        """Give the last look in the text format of Prometheus."""
        lines: list[str] = []
        for kind, suffix, families in (("gauge", "", _GAUGES), ("counter", "_total", _COUNTERS)):
            for name, (says, labels) in families.items():
                full = f"maitred_{name}{suffix}"
                lines.append(f"# HELP {full} {says}\n# TYPE {full} {kind}\n")
                rows = self._rows.get(name, ())
                lines += [f"{_series(full, labels, values)} {float(value)}\n" for values, value in rows]
        return "".join(lines).encode()

    async def look(self) -> None:
        """Look at the queues, unless that was done within the last second; one look serves all who ask."""
        if time.monotonic() - self._looked < GOOD_FOR:
            return
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        await asyncio.shield(self._looking)

    async def _look(self) -> None:
        rows: _Rows = {name: [] for name in (*_GAUGES, *_COUNTERS)}
        try:
            await self._ask(rows)
            rows["store_up"].append(((), 1))
        except (StoreError, TimeoutError):
            rows = {name: [] for name in rows} | {"store_up": [((), 0)]}
        self._note_house(rows)
        self._rows, self._looked = rows, time.monotonic()

    async def _ask(self, rows: _Rows) -> None:
        stores = self._desk.stores
        async with asyncio.timeout(PATIENCE):
            names = await stores.names()
            if spent := await stores.script_time():
                rows["store_scripts"].append(((), spent.calls))
                rows["store_script_seconds"].append(((), spent.seconds))
        for first in range(0, len(names), AT_ONCE):
            async with asyncio.timeout(PATIENCE):
                some = names[first : first + AT_ONCE]
                asked = (stores.queue(name).status() for name in some)
                statuses = await asyncio.gather(*asked, return_exceptions=True)
            for name, status in zip(some, statuses, strict=True):
                if isinstance(status, Status):
                    _note_queue(rows, name, status)
                elif isinstance(status, StoreError) or not isinstance(status, MaitredError):
                    raise status

    def _note_house(self, rows: _Rows) -> None:
        """Note who is at this server, and what its foresights know."""
        lookouts = self._desk.foresights.lookouts() if self._desk.foresights else {}
        for name, lookout in lookouts.items():
            rows["watchers"].append(((name, "job"), len(lookout.jobs)))
            rows["watchers"].append(((name, "batch"), len(lookout.batches)))
            rows["watchers"].append(((name, "everything"), len(lookout.teller)))
            if picture := lookout.foresight.picture:
                settings = picture.survey.settings
                counts = Counter({each.name: 0 for each in settings.levels})
                for lane, orders in picture.lanes.names().items():
                    counts[class_name(picture.lanes[lane].waiting.level, settings) or ""] += len(orders)
                rows["waiting_by_class"] += [((name, each), count) for each, count in counts.items()]
        sessions = self._desk.sessions
        rows["sessions"] += [((name,), count) for name, count in sessions.clients.items()]
        rows["sessions_denied"] += [(key, count) for key, count in sessions.denials.items()]


def _note_queue(rows: _Rows, name: str, status: Status) -> None:
    rows["jobs"] += [((name, state), count) for state, count in status.counts.items()]
    rows["waiting"].append(((name,), status.waiting))
    for each in classes_of(status):
        rows["running"].append(((name, each["name"]), each["running"]))
        rows["class_limit"].append(((name, each["name"]), each["limit"]))
    rows["slots"].append(((name,), slots_of(status)))
    rows["free_slots"].append(((name,), status.free))
    draining = sum(worker.draining for worker in status.workers)
    rows["workers"].append(((name, "taking"), len(status.workers) - draining))
    rows["workers"].append(((name, "draining"), draining))
    rows["paused"].append(((name,), status.paused is not None))
    for kind in ("submitter", "profile", "batch"):
        rows["holds"].append(((name, kind), sum(hold.kind == kind for hold in status.holds)))
    if status.settings.space:
        rows["space_bytes"].append(((name,), status.settings.space))
        rows["space_used_bytes"].append(((name,), status.space_used))


@lru_cache(1 << 16)
def _series(name: str, labels: tuple[str, ...], values: tuple[str, ...]) -> str:
    """Name a series; the same ones are asked for at each scrape."""
    pairs = (f'{label}="{_escaped(value)}"' for label, value in zip(labels, values, strict=True))
    return f"{name}{{{','.join(pairs)}}}" if labels else name


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
