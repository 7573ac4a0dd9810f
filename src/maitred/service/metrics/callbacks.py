"""Tries to tell submitters what has become of their jobs and batches, by what was answered."""

from prometheus_client import CollectorRegistry, Counter, Histogram

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15)


class CallbackMetrics:
    """Tries of the couriers and clerks of one process."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._tries = Counter(
            "maitred_callback_tries",
            "Tries at callbacks by what came of them: sent, again (later) or refused.",
            ("queue", "kind", "answer"),
            registry=registry,
        )
        self._seconds = Histogram(
            "maitred_callback_seconds",
            "Time of one try at a callback.",
            ("queue",),
            buckets=SECONDS,
            registry=registry,
        )

    def note(self, queue: str, kind: str, answer: str, seconds: float) -> None:
        """Note a try at a message of this kind, as `job.ended`."""
        self._tries.labels(queue, kind, answer).inc()
        self._seconds.labels(queue).observe(seconds)
