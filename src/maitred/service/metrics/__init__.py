"""What a process counts and measures, and how Prometheus reads it.

`tally` counts what a server hears of its queues, `gauges` reads how they are when somebody asks, `calls`
measures the store, `callbacks` the messages to submitters, `runs` what the workers of this process do. Each
name is in docs/metrics.md.
"""

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from maitred.service.metrics.callbacks import CallbackMetrics
from maitred.service.metrics.calls import CallMetrics
from maitred.service.metrics.runs import RunMetrics
from maitred.service.metrics.tally import Tallies

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """All that one process counts. It costs nothing but memory until somebody counts with it."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        # Those who write down by themselves what they show, in the same format.
        self.writers: list[Callable[[], bytes]] = []
        ProcessCollector(registry=self.registry)
        self.tallies = Tallies(self.registry)
        self.calls = CallMetrics(self.registry)
        self.callbacks = CallbackMetrics(self.registry)
        self.runs = RunMetrics(self.registry)

    def exposition(self) -> bytes:
        """Give all of it in the text format of Prometheus; from any thread."""
        return b"".join([generate_latest(_Ageless(self.registry)), *(write() for write in self.writers)])


class _Ageless(Collector):
    """Leaves out when each series began, which this format can only show as one more series for each."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterator[Metric]:
        for metric in self._registry.collect():
            metric.samples = [each for each in metric.samples if not each.name.endswith("_created")]
            yield metric


__all__ = ["MEDIA_TYPE", "Metrics"]
