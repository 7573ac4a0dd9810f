"""Reading the tree: a job, a batch, and how many jobs a batch has of each kind.

Reads of one item are sent together. They need not show one moment: whoever changes an item checks the
versions that were read, and every change of an item gives its status a new one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import msgspec

from maitred.core.batch import BUCKETS, UNFINISHED, Batch, BatchState, RowView
from maitred.core.job import DEFAULT_PRIORITY, Submitter
from maitred.core.stages import FAILED, HELD, last_successful
from maitred.errors import StoreError
from maitred.store.zookeeper import payloads
from maitred.store.zookeeper.payloads import Expansion, Standing
from maitred.store.zookeeper.session import Node, Session
from maitred.store.zookeeper.tree import DELETED, FACTS, Tree

READ_TOGETHER = 100
READ_AGAIN = 5


@dataclass(frozen=True, slots=True)
class JobEntry:
    """A job as the tree has it: one version of it, with an id of its own.

    `version` is that of its status; whoever changes the job names it. `placed` is that of its place.
    `present` are the facts that have a node.
    """

    jid: str
    batch: str
    state: str
    version: int
    last: str | None
    retries: int
    modified_at: int
    priority: int
    space: int
    identifiers: bytes
    configuration: dict[str, Any]
    standing: Standing
    placed: int
    present: frozenset[str]

    @property
    def mark(self) -> int:
        """The version as a line keeps it: 1 is a state that was never changed, 0 is none."""
        return self.version + 1

    @property
    def body(self) -> bytes:
        """What the job was submitted with."""
        return payloads.read_body(self.standing, self.configuration)

    @property
    def submitter(self) -> Submitter:
        """Whose it is."""
        return payloads.read_submitter(self.configuration.get("submitter"))

    @property
    def profile(self) -> str:
        """Its profile; empty if it has none."""
        return str(self.configuration.get("profile_name") or "")


@dataclass(frozen=True, slots=True)
class BatchEntry:
    """A batch as the tree has it, without its rows, with the versions of its status and its expansion."""

    batch: Batch
    status: int
    expanded: int
    expansion: Expansion
    ours: bool
    bucketed: bool

    @property
    def id(self) -> str:
        """The batch's id."""
        return self.batch.id


class Unreadable(StoreError):
    """A node of the tree holds what cannot be read; `check` names it."""

    def __init__(self, path: str, why: object) -> None:
        self.path = path
        super().__init__(f"{path}: {why}")


class Reader:
    """Reads items of one tree."""

    def __init__(self, session: Session, tree: Tree, stages: tuple[str, ...]) -> None:
        self.session, self.tree, self.stages = session, tree, stages
        self.job_states = tuple(dict.fromkeys((*tree.index_states(stages), DELETED)))

    async def job(self, jid: str) -> JobEntry | None:
        """Read a job; None if there is none, or none yet. Unreadable if a node is spoilt."""
        [entry] = await self.jobs_or_faults([jid])
        if isinstance(entry, Unreadable):
            raise entry
        return entry

    async def jobs(self, jids: Sequence[str]) -> list[JobEntry | None]:
        """Read several jobs; Unreadable if a node of any is spoilt."""
        entries = await self.jobs_or_faults(jids)
        for entry in entries:
            if isinstance(entry, Unreadable):
                raise entry
        return [entry for entry in entries if not isinstance(entry, Unreadable)]

    async def jobs_or_faults(self, jids: Sequence[str]) -> list[JobEntry | Unreadable | None]:
        """Read several jobs, a bounded number at a time, or say of each what is spoilt."""
        entries: list[JobEntry | Unreadable | None] = []
        for begin in range(0, len(jids), READ_TOGETHER):
            some = jids[begin : begin + READ_TOGETHER]
            nodes = iter(
                await self.session.get_all([self.tree.job(jid, fact) for jid in some for fact in FACTS])
            )
            for jid in some:
                # The status is read before the rest: what is changed between has another version of it then.
                found = {
                    fact: node for fact, node in zip(FACTS, islice(nodes, len(FACTS)), strict=True) if node
                }
                entries.append(self._job_or_fault(jid, found))
        return entries

    def _job_or_fault(self, jid: str, found: dict[str, Node]) -> JobEntry | Unreadable | None:
        if "status" not in found:
            return None
        try:
            return self._job(jid, found)
        except (ValueError, TypeError, msgspec.MsgspecError) as error:
            return Unreadable(self.tree.job(jid), error)

    def state_of(self, status: Node) -> str:
        """Read the state of a job from its status alone; ValueError if it is spoilt."""
        return payloads.read_state(payloads.read_object(status.data).get("status"), self.job_states)

    async def rows(self, jids: Sequence[str]) -> list[RowView | None]:
        """Read of several jobs what a report says of them; None of one that is not there."""
        facts = ("status", "place")
        nodes = await self.session.get_all([self.tree.job(jid, fact) for jid in jids for fact in facts])
        rows: list[RowView | None] = []
        for jid, status, place in zip(jids, nodes[::2], nodes[1::2], strict=True):
            if status is None:
                rows.append(None)
                continue
            try:
                said = payloads.read_object(status.data)
                standing = self._standing(jid, place, self.state_of(status), None, said)
                state = self.state_of(status)
            except (ValueError, TypeError, msgspec.MsgspecError) as error:
                raise Unreadable(self.tree.job(jid), error) from error
            rows.append(RowView(standing.id, standing.label, state, standing.message, standing.reported))
        return rows

    def _job(self, jid: str, found: dict[str, Node]) -> JobEntry:
        status = payloads.read_object(found["status"].data)
        state = payloads.read_state(status.get("status"), self.job_states)
        last = status.get("last_successful_status")
        last = payloads.read_state(last, self.job_states) if last else None
        identifiers = found["identifiers"].data if "identifiers" in found else b""
        configuration = payloads.read_object(found["configuration"].data) if "configuration" in found else {}
        standing = self._standing(jid, found.get("place"), state, last, status)
        modified_at = payloads.read_time(status.get(self.tree.layout.modified))
        return JobEntry(
            jid=jid,
            batch=_text(found.get("bid")),
            state=state,
            version=found["status"].version,
            last=last,
            retries=int(status.get("retry_count") or 0),
            modified_at=standing.modified_at or modified_at,
            priority=_number(found.get("priority"), DEFAULT_PRIORITY),
            space=_number(found.get("space_needed"), 0),
            identifiers=b"" if identifiers == payloads.NO_IDENTIFIERS else identifiers,
            configuration=configuration,
            standing=standing,
            placed=found["place"].version if "place" in found else -1,
            present=frozenset(found),
        )

    def _standing(
        self, jid: str, node: Node | None, state: str, last: str | None, status: dict[str, Any]
    ) -> Standing:
        """Read a job's place. What another program wrote since is in the status, and that is what counts."""
        standing = payloads.read_standing(node.data) if node else Standing(key=jid)
        stage = self._stage(standing, state, last)
        if stage != standing.stage:
            standing = msgspec.structs.replace(standing, stage=stage)
        message = status.get("message")
        if state == FAILED and isinstance(message, str) and message and not standing.message:
            standing = msgspec.structs.replace(standing, message=payloads.cut(message))
        return standing

    def _stage(self, standing: Standing, state: str, last: str | None) -> int:
        """Give the number of the stage that a job is at, from its state and what it finished."""
        if state in self.stages:
            return self.stages.index(state) + 1
        if state in (HELD, FAILED):
            if last_successful(self.stages, standing.stage, state) == last:
                return standing.stage
            return self.stages.index(last) + 2 if last in self.stages[:-1] else 0
        return len(self.stages) if state == "completed" else 0 if state == "pending" else standing.stage

    # ---------------------------------------------------------------- batches

    async def batch(self, bid: str, *, whole: bool = True) -> BatchEntry | None:
        """Read a batch; None if there is none, or none yet. A whole one has its last report and counts."""
        path = self.tree.batch
        names = ["status", "submission", "expansion", "states", *(["status-report"] if whole else [])]
        status, submission, expansion, states, *reports = await self._of_one_moment(bid, names)
        if status is None or submission is None:
            return None
        report = reports[0] if reports else None
        try:
            entry = self._batch(bid, submission, status, expansion, states)
            entry.batch.report = await self._report(bid, report) if report else b""
        except (ValueError, TypeError, msgspec.MsgspecError) as error:
            raise Unreadable(path(bid), error) from error
        if whole:
            entry.batch.counts |= await self.counts(bid)
        return entry

    async def sound_batch(self, bid: str, *, whole: bool = True) -> BatchEntry | None:
        """Read a batch among others: one that is spoilt is not there, so that the others go on."""
        try:
            return await self.batch(bid, whole=whole)
        except Unreadable:
            return None

    async def _of_one_moment(self, bid: str, names: Sequence[str]) -> list[Node | None]:
        """Read nodes of a batch, its status first; whoever changes one of them writes the status too."""
        paths = [self.tree.batch(bid, name) for name in (*names, "status")]
        nodes: list[Node | None] = []
        for _ in range(READ_AGAIN):
            *nodes, after = await self.session.get_all(paths)
            before = nodes[0]
            if before is None or (after and after.version == before.version):
                break
        return nodes

    def _batch(
        self, bid: str, submission: Node, status: Node, expansion: Node | None, states: Node | None
    ) -> BatchEntry:
        said = payloads.read_object(status.data)
        state = BatchState(payloads.read_state(said.get("status"), BatchState))
        if expansion is not None:
            own = payloads.read_expansion(expansion.data)
        else:
            own = _foreign(submission, state)
        modified_at = own.modified_at or payloads.read_time(said.get("last_modified"))
        batch = Batch(
            id=bid,
            external_id=own.external_id,
            submitter=payloads.read_submitter(own.submitter),
            profile=own.profile,
            submission=payloads.read_submission(submission.data),
            created_at=own.created_at or submission.created * 1_000,
            modified_at=modified_at,
            state=state,
            sealed=own.sealed,
            sealing=own.sealing,
            expanding=own.expanding,
            fault=own.fault,
            sequence=own.sequence,
            unsent=own.unsent,
            tries=own.tries,
            try_at=own.try_at,
        )
        version = expansion.version if expansion else -1
        return BatchEntry(batch, status.version, version, own, expansion is not None, states is not None)

    async def _report(self, bid: str, node: Node) -> bytes:
        report = payloads.read_report(node.data)
        if isinstance(report, bytes):
            return report
        names = [part_name(report[0], number) for number in range(report[1])]
        parts = await self.session.get_all([self.tree.batch(bid, "status-report", name) for name in names])
        return b"".join(part.data for part in parts if part)

    async def counts(self, bid: str) -> dict[str, int]:
        """Count the jobs of a batch by the buckets of the layout; nothing is listed.

        A layout that has one bucket for all that is unfinished counts these as processing.
        """
        kinds = {node: kind for kind, node in self.tree.layout.buckets.items()}
        paths = [self.tree.batch(bid, "states", node) for node in kinds]
        stats = await self.session.stat_all(paths)
        counts = dict.fromkeys(BUCKETS, 0)
        for kind, stat in zip(kinds.values(), stats, strict=True):
            counts[kind] = stat.children if stat else 0
        return counts

    async def unfinished(self, bid: str) -> int:
        """Count the jobs of a batch that have not ended."""
        counts = await self.counts(bid)
        return sum(counts[kind] for kind in UNFINISHED)


def part_name(sequence: int, number: int) -> str:
    """Name a part of a report that is too large for one node."""
    return f"{sequence:06d}-{number:06d}"


def _foreign(submission: Node, state: BatchState) -> Expansion:
    """Say of a batch that another program made what can be known."""
    fields = payloads.read_object(submission.data)
    return Expansion(
        sealed=state is not BatchState.PENDING,
        external_id=str(fields.get("batchID") or ""),
        submitter=str(fields.get("submitter") or ""),
        profile=str(fields.get("profile_name") or ""),
    )


def _text(node: Node | None) -> str:
    return node.data.decode() if node else ""


def _number(node: Node | None, otherwise: int) -> int:
    return int(node.data) if node and node.data else otherwise
