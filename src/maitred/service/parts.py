"""Lists that the store gives as a whole, shown in parts."""

from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar

from maitred.service.cursor import Spot, read_cursor, write_cursor
from maitred.service.document import Document

T = TypeVar("T")

# The one section of such a list.
PLAIN = 0


class Part(NamedTuple, Generic[T]):
    """Some of a list that the store gives as a whole."""

    items: Sequence[T]
    end: int
    total: int

    def page(self, documents: list[Document]) -> Document:
        """Give the page with these documents."""
        more = self.end < self.total
        following = write_cursor(Spot(PLAIN, self.end)) if more else None
        return {"items": documents, "next": following, "total": self.total}


def part_of(items: Sequence[T], cursor: str | None, limit: int) -> Part[T]:
    """Give the items after a cursor; `InvalidJob` if that is none."""
    first = read_cursor(cursor).offset if cursor else 0
    end = max(0, first) + limit
    return Part(items[max(0, first) : end], end, len(items))
