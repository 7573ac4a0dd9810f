"""Whoever calls: by which key, from where, and what of the jobs that key may touch and see.

A submitter's key touches only what belongs to the submitters that it names. It asks for no band but the
scheduled one and for no better priority than the common one, and waits at least as long as the queue's policy
says. Of other jobs it sees where they are in line, and not whose they are.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from maitred.core.job import DEFAULT_PRIORITY, Band, Order, Submitter
from maitred.core.settings import Settings
from maitred.errors import Forbidden
from maitred.service.document import Document
from maitred.service.keyring import LOCAL, Key

ALL = "*"
# What is told of a job to those whose job it is not.
OF_OTHERS = ("id", "band", "class", "state", "position")


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: the record of a key, and the address that the call came from."""

    key: Key
    address: str = ""

    @property
    def by(self) -> str:
        """The name under which is told who did something."""
        return "admin" if self.key.id == LOCAL else self.key.name

    @property
    def limited(self) -> bool:
        """Whether this is a submitter's key."""
        return self.key.role == "submitter"

    def may_use(self, queue: str) -> bool:
        """Tell whether the key is good for a queue."""
        return not self.key.queues or queue in self.key.queues

    def owns(self, submitter: Submitter) -> bool:
        """Tell whether what this submitter has may be touched and seen."""
        if not self.limited:
            return True
        return ALL in self.key.submitters or f"{submitter.type}:{submitter.id}" in self.key.submitters

    def must_own(self, submitter: Submitter) -> None:
        """Raise `Forbidden` unless what this submitter has may be touched."""
        if not self.owns(submitter):
            raise Forbidden(f"the key is not good for {submitter.type}:{submitter.id}")

    def order(self, order: Order, settings: Settings) -> Order:
        """Give an order as this caller may make it; `Forbidden` if it may not at all."""
        if not self.limited:
            return order
        self.must_own(order.submitter)
        self.must_be_common(
            immediate=order.band is Band.IMMEDIATE, bulk=order.band is Band.BULK, priority=order.priority
        )
        # Where the policy makes those wait who submit much, many jobs at once yield to all others.
        band = Band.BULK if order.batch and settings.per_recent else order.band
        return order._replace(band=band, policy_floor=True, exempt=False)

    def must_be_common(self, *, immediate: bool = False, bulk: bool = False, priority: int) -> None:
        """Raise `Forbidden` for what only operators may ask for."""
        if not self.limited:
            return
        if immediate:
            raise Forbidden("immediate is for operators")
        if bulk:
            raise Forbidden("bulk is for operators")
        if priority < DEFAULT_PRIORITY:
            raise Forbidden(f"a priority below {DEFAULT_PRIORITY} is for operators")

    # ---------------------------------------------------------------- what is seen

    def seen(self, job: Document) -> Document:
        """Give the document of a job as far as this caller may see it."""
        if self._owns_document(job):
            return job
        return {name: job.get(name) for name in OF_OTHERS}

    def seen_page(self, page: Document) -> Document:
        """Give a list of jobs as far as this caller may see each."""
        return {**page, "items": [self.seen(job) for job in page["items"]]} if self.limited else page

    def seen_queue(self, queue: Document) -> Document:
        """Give a queue, without the names of other submitters that are held."""
        if not self.limited:
            return queue
        held = [hold for hold in queue["held"]["submitters"] if self._named(hold["name"])]
        return {**queue, "held": {**queue["held"], "submitters": held}}

    def _owns_document(self, document: Mapping[str, Any]) -> bool:
        who = document["submitter"]
        return self.owns(Submitter(who["type"], who["id"]))

    def _named(self, submitter: str) -> bool:
        return ALL in self.key.submitters or submitter in self.key.submitters


# Whoever has the store itself, as programs and those who call while there are no keys.
HOUSE = Caller(Key(LOCAL, "callers on loopback", "admin", 0))
