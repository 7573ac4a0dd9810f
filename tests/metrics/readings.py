"""What `/metrics` shows, read as Prometheus reads it."""

from collections.abc import Iterator

import httpx
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from tests.waiting import eventually


def samples(text: str) -> list[Sample]:
    """Parse all samples."""
    return [sample for family in text_string_to_metric_families(text) for sample in family.samples]


def names(text: str) -> set[str]:
    """Name all metrics that are described, as queries name them."""
    return set(_names(text))


def _names(text: str) -> Iterator[str]:
    for family in text_string_to_metric_families(text):
        if family.type == "counter":
            yield f"{family.name}_total"
        elif family.type == "histogram":
            yield from (f"{family.name}_{part}" for part in ("bucket", "count", "sum"))
        else:
            yield family.name


class Readings:
    """Reads the metrics of one process about one queue."""

    def __init__(self, http: httpx.AsyncClient, queue: str) -> None:
        self.http, self.queue = http, queue

    async def text(self) -> str:
        answer = await self.http.get("/metrics")
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
        return answer.text

    async def value(self, name: str, **labels: str) -> float:
        """Give the sum of all samples with this name and these labels; those with a queue, of this queue."""
        wanted = {"class" if key == "class_" else key: value for key, value in labels.items()}
        return sum(
            sample.value
            for sample in samples(await self.text())
            if sample.name == f"maitred_{name}"
            and sample.labels.get("queue", self.queue) == self.queue
            and wanted.items() <= sample.labels.items()
        )

    async def until(self, name: str, value: float, **labels: str) -> None:
        """Wait until it has this value."""

        async def look() -> bool:
            return await self.value(name, **labels) == value

        await eventually(look, patience=30)
