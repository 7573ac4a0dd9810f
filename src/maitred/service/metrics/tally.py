"""The tally: what a server counts of its queues from the events that it hears.

Each server hears all events of all queues, whoever caused them. So each counts all of them, from its own
start on: of several servers one is to be read, and they are not to be added up. What a server could not hear,
as while the store was out of its reach, it has not counted; how many entries that were is counted too.
"""

from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram

from maitred.core.events import Ended, Entry, Freed, Returned, Started
from maitred.core.floor import Kind
from maitred.core.occupancy import Running
from maitred.core.settings import SECOND, Settings
from maitred.service.metrics.codes import label_of
from maitred.store.port import Survey

# From a hundredth of a second to half a day: jobs wait and run for either.
LONG = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3_600, 14_400, 43_200)
INTERACTIVE = "interactive"


class Tallies:
    """The tally of each queue."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def counter(name: str, says: str, *labels: str) -> Counter:
            return Counter(f"maitred_{name}", says, ("queue", *labels), registry=registry)

        def histogram(name: str, says: str, *labels: str) -> Histogram:
            return Histogram(f"maitred_{name}", says, ("queue", *labels), buckets=LONG, registry=registry)

        self.started = counter("runs_started", "Runs that began.", "class")
        self.ended = counter("jobs_ended", "Jobs that ended.", "class", "code")
        self.lost = counter("lost_leases", "Runs that were lost with their worker.")
        self.handed_back = counter("hand_backs", "Runs that a worker gave back.")
        self.retried = counter("retries", "Runs that failed and are tried again.")
        self.wait = histogram("wait_seconds", "Time from a place's release to its start.", "class")
        self.run = histogram("run_seconds", "Time from a start until its slot was free again.", "class")
        self.estimates = counter("estimates", "Starts for which a range had been quoted.", "result")
        self.error = histogram("estimate_error_seconds", "Time between expected and real start.", "side")
        self.read = counter("events_read", "Entries of a queue's events that this server read.")
        self.missed = counter("events_missed", "Entries that this server could not read.")
        self._queues: dict[str, Tally] = {}

    def of(self, queue: str) -> "Tally":
        """Give the tally of a queue."""
        if queue not in self._queues:
            self._queues[queue] = Tally(self, queue)
        return self._queues[queue]


class Tally:
    """Counts what happens in one queue. It looks with each survey, and counts each entry once."""

    def __init__(self, metrics: Tallies, queue: str) -> None:
        self._metrics, self._queue = metrics, queue
        self._children: dict[tuple[object, ...], Any] = {}
        self._runs: dict[int, tuple[str, int]] = {}
        self._number: int | None = None
        self._settings: Settings | None = None
        self._classes: list[str] = []
        self._lost = metrics.lost.labels(queue)
        self._handed_back = metrics.handed_back.labels(queue)
        self._retried = metrics.retried.labels(queue)
        self._read, self._missed = metrics.read.labels(queue), metrics.missed.labels(queue)

    def look(self, survey: Survey) -> None:
        """Know what runs when a new picture is taken; what was told since the last entry was missed."""
        if self._number is not None and survey.last_number > self._number:
            self._missed.inc(survey.last_number - self._number)
        self._number = survey.last_number
        self._know(survey.settings)
        self._runs = {record: (self._class(run), run.start) for record, run in survey.runs.items()}

    def count(self, entry: Entry, settings: Settings) -> None:
        """Count what one call changed."""
        self._number = entry.number
        self._know(settings)
        self._read.inc()
        freed: dict[int, tuple[str, int]] = {}
        for event in entry.events:
            match event:
                case Started():
                    name = self._class(event)
                    self._runs[event.record] = (name, event.start)
                    self._child(self._metrics.started, name).inc()
                case Freed() if run := self._runs.pop(event.record, None):
                    freed[event.record] = run
                    self._child(self._metrics.run, run[0]).observe(max(0, entry.now - run[1]) / SECOND)
                case Returned():
                    self._returned(event.code)
                case _:
                    pass
        for event in entry.events:
            if isinstance(event, Ended):
                name, _ = freed.get(event.record) or self._runs.get(event.record) or ("", 0)
                self._child(self._metrics.ended, name, label_of(event.code)).inc()

    def waited(self, level: int, wait: int) -> None:
        """Count the wait of a job that has just started."""
        self._child(self._metrics.wait, self._named(level)).observe(wait / SECOND)

    def compared(self, low: int, expected: int, high: int, start: int) -> None:
        """Count how a quoted range, and the time that was expected, held against the start."""
        result = "early" if start < low else "late" if start > high else "covered"
        self._child(self._metrics.estimates, result).inc()
        side = "early" if start < expected else "late"
        self._child(self._metrics.error, side).observe(abs(start - expected) / SECOND)

    def _returned(self, code: str) -> None:
        known = {"lost": self._lost, "handed-back": self._handed_back}
        known.get(code, self._retried).inc()

    def _class(self, run: Started | Running) -> str:
        """Name the class whose units a run holds at its start; an elastic one holds the fastest's."""
        return INTERACTIVE if run.kind is Kind.INTERACTIVE else self._named(run.level)

    def _named(self, level: int) -> str:
        """Name a class; one that the queue no longer has is nameless."""
        return self._classes[level - 1] if level <= len(self._classes) else ""

    def _know(self, settings: Settings) -> None:
        if settings is not self._settings:
            self._settings, self._classes = settings, [each.name for each in settings.levels]

    def _child(self, metric: Counter | Histogram, *labels: str) -> Any:
        """Give a metric with these labels, kept since finding it costs more than counting."""
        key = (id(metric), *labels)
        child = self._children.get(key)
        if child is None:
            child = self._children[key] = metric.labels(self._queue, *labels)
        return child
