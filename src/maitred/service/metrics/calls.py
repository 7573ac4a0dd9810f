"""How long the store takes, as this process sees it: each call by its verb, and those that failed."""

from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram

SHORT = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5)


class CallMetrics:
    """Calls of the store; `Stores.on_call` tells of each."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._seconds = Histogram(
            "maitred_store_call_seconds",
            "Time of one call of the store, the way there and back included.",
            ("verb",),
            buckets=SHORT,
            registry=registry,
        )
        self._failures = Counter(
            "maitred_store_call_failures",
            "Calls that the store did not answer, or refused.",
            ("verb", "reason"),
            registry=registry,
        )
        self._children: dict[str, Any] = {}

    def note(self, verb: str, seconds: float, failure: str) -> None:
        """Note a call: how long it took, and why it failed, empty if it did not."""
        child = self._children.get(verb)
        if child is None:
            child = self._children[verb] = self._seconds.labels(verb)
        child.observe(seconds)
        if failure:
            self._failures.labels(verb, failure).inc()
