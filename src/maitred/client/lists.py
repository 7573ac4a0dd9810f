"""Lists without pages: each item in turn, and the next page is asked for when it is needed."""

from collections.abc import AsyncGenerator, Mapping
from typing import TypeVar

from pydantic import BaseModel

from maitred.client.calling import Caller
from maitred.client.keys import AUDIT
from maitred.client.retrying import Question
from maitred.client.sending import key_path, path_of
from maitred.wire import (
    AuditEntry,
    BatchDocument,
    DeliveryDocument,
    JobDocument,
    KeyDocument,
    OthersJob,
    OutputDocument,
    OutputPiece,
    Page,
    QueueDocument,
    RunningJob,
    WorkerDocument,
)

Item = TypeVar("Item", bound=BaseModel)
MOST = "500"


class ListCalls(Caller):
    """Each item of a list; what comes and goes meanwhile may be in it or not."""

    def each_job(self, /, queue: str, **query: str) -> AsyncGenerator[JobDocument | OthersJob, None]:
        """Give each job; the keywords are the query's parameters, such as `state` and `submitter`."""
        page = Page[JobDocument | OthersJob]
        return self._each(page, path_of(queue, "jobs"), queue, query)

    def each_waiting(self, queue: str) -> AsyncGenerator[JobDocument | OthersJob, None]:
        """Give each waiting job in line order."""
        return self._each(Page[JobDocument | OthersJob], path_of(queue, "line"), queue)

    def each_running(self, queue: str) -> AsyncGenerator[RunningJob | OthersJob, None]:
        """Give each running job in the order of the starts."""
        return self._each(Page[RunningJob | OthersJob], path_of(queue, "running"), queue)

    def each_worker(self, queue: str) -> AsyncGenerator[WorkerDocument, None]:
        """Give each worker."""
        return self._each(Page[WorkerDocument], path_of(queue, "workers"), queue)

    def each_batch(self, /, queue: str, **query: str) -> AsyncGenerator[BatchDocument, None]:
        """Give each batch, newest first; the keywords are the query's parameters."""
        return self._each(Page[BatchDocument], path_of(queue, "batches"), queue, query)

    def each_delivery(
        self, queue: str, id: str, version: int | None = None
    ) -> AsyncGenerator[DeliveryDocument, None]:
        """Give each try at a job's callbacks that is kept, oldest first."""
        path, query = path_of(queue, "jobs", id, "deliveries"), _of_version(version)
        return self._each(Page[DeliveryDocument], path, queue, query, id=id)

    async def each_output(
        self, queue: str, id: str, version: int | None = None, *, stream: str | None = None
    ) -> AsyncGenerator[OutputPiece, None]:
        """Give each piece of what a job said, up to now."""
        path, begin = path_of(queue, "jobs", id, "output"), 1
        query = _of_version(version) | ({} if stream is None else {"stream": stream})
        while True:
            question = Question("GET", path, queue, id)
            content = await self._ask(question, query={**query, "from": str(begin), "limit": MOST})
            said = OutputDocument.model_validate_json(content)
            for piece in said.items:
                yield piece
            if not said.items:
                return
            begin = said.next

    def each_queue(self) -> AsyncGenerator[QueueDocument, None]:
        """Give each queue that the key may see, by name."""
        return self._each(Page[QueueDocument], path_of())

    def each_key(self) -> AsyncGenerator[KeyDocument, None]:
        """Give each API key."""
        return self._each(Page[KeyDocument], key_path())

    def each_change(self) -> AsyncGenerator[AuditEntry, None]:
        """Give each change that the audit log keeps, newest first."""
        return self._each(Page[AuditEntry], AUDIT)

    async def _each(
        self,
        kind: type[Page[Item]],
        path: str,
        queue: str = "",
        query: Mapping[str, str] | None = None,
        *,
        id: str = "",
    ) -> AsyncGenerator[Item, None]:
        """Give each item of the list at a path."""
        asked = {"limit": MOST, **(query or {})}
        while True:
            page = kind.model_validate_json(await self._ask(Question("GET", path, queue, id), query=asked))
            for item in page.items:
                yield item
            if page.next is None:
                return
            asked["cursor"] = page.next


def _of_version(version: int | None) -> dict[str, str]:
    return {} if version is None else {"version": str(version)}
