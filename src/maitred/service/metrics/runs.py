"""What the workers of one process do: their slots at the moment of a scrape, and the runs that have ended."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from maitred.service.health import Health
from maitred.service.metrics.codes import label_of
from maitred.service.metrics.tally import LONG

_GAUGES: dict[str, tuple[str, Callable[[Health], float]]] = {
    "slots": ("Slots of the workers in this process.", lambda health: health.slots),
    "busy": ("Slots in which a job runs.", lambda health: health.busy),
    "stuck": ("Slots held by handlers that did not stop when told.", lambda health: health.stuck),
    "taking": ("1 if the worker takes jobs, as /readyz tells.", lambda health: not health.trouble),
    "store_up": ("1 if the store answers the worker.", lambda health: health.away_since is None),
}


class RunMetrics:
    """Runs of the workers in one process, by queue."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._runs = Counter(
            "maitred_worker_runs", "Runs that ended here.", ("queue", "code"), registry=registry
        )
        self._seconds = Histogram(
            "maitred_worker_run_seconds",
            "Time from the begin of a run here to its end.",
            ("queue",),
            buckets=LONG,
            registry=registry,
        )
        self._lost = Counter(
            "maitred_worker_lost_leases",
            "Runs that this process lost, and ended without a result.",
            ("queue",),
            registry=registry,
        )
        self._handed_back = Counter(
            "maitred_worker_hand_backs", "Jobs that were given back.", ("queue",), registry=registry
        )

    def watch(self, workers: Callable[[], Sequence[Health]]) -> None:
        """Show how these workers are at each scrape; call it once."""
        self._registry.register(_Slots(workers))

    def ends(self, queue: str, label: str) -> Counter:
        """Give what counts the runs that end like this: by themselves or stopped, and told to the store."""
        return self._runs.labels(queue, label)

    def times(self, queue: str) -> Histogram:
        """Give what takes the time of each of them."""
        return self._seconds.labels(queue)

    def lost(self, queue: str, runs: int) -> None:
        """Count runs that are no longer ours."""
        self._lost.labels(queue).inc(runs)

    def handed_back(self, queue: str, runs: int) -> None:
        """Count jobs that were given back."""
        self._handed_back.labels(queue).inc(runs)


class RunCount:
    """Counts for one worker; without metrics, nothing."""

    def __init__(self, queue: str = "", metrics: RunMetrics | None = None) -> None:
        self.queue, self._metrics = queue, metrics
        # Looking them up takes longer than counting, and a worker ends tens of thousands a second.
        self._ends: dict[str, Counter] = {}
        self._times = metrics and metrics.times(queue)

    def ended(self, code: str, seconds: float) -> None:
        """Count a run that ended with this code."""
        if self._metrics and self._times:
            label = label_of(code)
            ends = self._ends.get(label)
            if ends is None:
                ends = self._ends[label] = self._metrics.ends(self.queue, label)
            ends.inc()
            self._times.observe(seconds)

    def lost(self, runs: int = 1) -> None:
        """Count runs that are no longer ours."""
        if self._metrics:
            self._metrics.lost(self.queue, runs)

    def handed_back(self, runs: int) -> None:
        """Count jobs that are given back."""
        if self._metrics:
            self._metrics.handed_back(self.queue, runs)


class _Slots(Collector):
    def __init__(self, workers: Callable[[], Sequence[Health]]) -> None:
        self._workers = workers

    def describe(self) -> Iterable[GaugeMetricFamily]:
        return [_family(name) for name in _GAUGES]

    def collect(self) -> Iterator[GaugeMetricFamily]:
        healths = self._workers()
        for name, (_, value) in _GAUGES.items():
            family = _family(name)
            for health in healths:
                family.add_metric([health.queue], float(value(health)))
            yield family


def _family(name: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"maitred_worker_{name}", _GAUGES[name][0], labels=["queue"])
