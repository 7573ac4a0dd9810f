"""PUT where the ledger is a tree: a new job has its id and its state there before it has a place in line.

A crash between the two leaves a pending job in the tree, which is brought into the line when the two are next
compared; that may also happen while its PUT is under way, and then the line knows it. Where the line refuses
a job, or another waits for its key by now, what was made in the tree is taken back.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from maitred.core.job import Band, Job, Order, Phase, Put, Refusal, View
from maitred.errors import (
    AlreadyEnded,
    BatchReporting,
    BatchSealed,
    LockLost,
    Overtaken,
    UnknownBatch,
    UnknownJob,
)
from maitred.store.zookeeper.batching import Batching
from maitred.store.zookeeper.bridge import Bridge
from maitred.store.zookeeper.intake import Added, Newcomer

Answer = Put | Refusal
# The mark of a state that was never changed.
NEW = 1


class Plan(NamedTuple):
    """One order, and what the line has of its job."""

    at: int
    order: Order
    view: View | None

    @property
    def waits(self) -> bool:
        """Whether the job waits or is held, so that this only changes it."""
        return self.view is not None and self.view.job.phase in (Phase.WAITING, Phase.HELD)

    @property
    def live(self) -> bool:
        """Whether a version of the job has not ended."""
        view = self.view
        return view is not None and (view.job.phase is not Phase.ENDED or bool(view.running_versions))


class Putting:
    """Creates and updates jobs of one queue."""

    def __init__(self, bridge: Bridge, batching: Batching) -> None:
        self.bridge, self.batching = bridge, batching
        self.intake = bridge.ledger.intake

    async def put(self, orders: Sequence[Order]) -> list[Answer]:
        """Create or update jobs in turn."""
        answers: list[Answer] = []
        for some in _without_doubles(orders):
            answers += await self._put(some)
        return answers

    async def _put(self, orders: Sequence[Order]) -> list[Answer]:
        views = await self.bridge.line.read([order.id for order in orders])
        plans = [Plan(at, *both) for at, both in enumerate(zip(orders, views, strict=True))]
        answers: dict[int, Answer] = {}
        passed: dict[int, Order] = {}
        fresh: dict[str, list[Plan]] = {}
        for plan in plans:
            answer = await self._answered(plan)
            if answer is not None:
                answers[plan.at] = answer
            elif plan.waits:
                passed[plan.at] = await self._rewritten(plan)
            elif bid := await self._stays_in(plan):
                await self._next_version(plan, bid, passed, answers)
            else:
                fresh.setdefault(plan.order.batch, []).append(plan)
        for bid, some in fresh.items():
            await self._add(bid, some, passed, answers)
        return await self._sent(plans, passed, answers)

    # ---------------------------------------------------------------- what forbids it

    async def _answered(self, plan: Plan) -> Answer | None:
        """Answer a PUT for which nothing is to be written: it is refused, or the batch has its key."""
        order, view = plan.order, plan.view
        if order.only_new and view and order.batch and view.job.batch == order.batch:
            return Put("known", view.job.record, view.job.version)
        if order.level > len(self.bridge.settings.levels):
            return "no-class"
        return await self._refusal(plan, view) if view else None

    async def _refusal(self, plan: Plan, view: View) -> Refusal | None:
        """Tell what forbids a PUT of a job that is known; the line would say the same."""
        order, job = plan.order, view.job
        if plan.live and job.submitter != order.submitter:
            return "other-submitter"
        if plan.live and job.band is Band.INTERACTIVE:
            return "interactive"
        mine = await self.batching.batch(job.batch) if job.batch else None
        if mine and mine.frozen:
            return "reporting"
        if plan.live and order.batch and (job.batch != order.batch or order.only_new):
            return "other-batch" if await self.batching.batch(order.batch) else "no-batch"
        return "longer-duration" if plan.waits and self._is_longer(order, job) else None

    def _is_longer(self, order: Order, job: Job) -> bool:
        levels = self.bridge.settings.levels
        asked, had = (
            levels[0].cap if each.elastic else each.duration or levels[each.level - 1].cap
            for each in (order, job)
        )
        return asked > had

    # ---------------------------------------------------------------- in the tree

    async def _rewritten(self, plan: Plan) -> Order:
        """Write a changed job to the tree; give the order by which the line changes it too."""
        assert plan.view is not None  # noqa: S101 - it waits
        jid = plan.view.job.ledger
        if not jid:
            return plan.order._replace(batch="", token=b"")
        entry = await self.bridge.jobs.rewrite(jid, plan.order)
        return plan.order._replace(ledger=jid, status=entry.mark)

    async def _stays_in(self, plan: Plan) -> str:
        """Name the batch that a new version stays in: that of the last one, until it is reported."""
        batch = plan.view.job.batch if plan.view else ""
        if not batch or (plan.order.batch not in ("", batch)):
            return ""
        entry = await self.bridge.ledger.reader.batch(batch, whole=False)
        return batch if entry and not entry.batch.reported else ""

    async def _next_version(
        self, plan: Plan, bid: str, passed: dict[int, Order], answers: dict[int, Answer]
    ) -> None:
        """Make the next version of a job in its batch, where it takes the older one's part."""
        assert plan.view is not None  # noqa: S101 - there is a version before
        jobs = self.bridge.jobs
        for _ in range(20):
            try:
                old = await jobs.read(plan.view.job.ledger)
                fence = await jobs.batch_fence(bid)
                jid = await self.intake.add_version(old, self._newcomer(plan), fence)
            except BatchReporting:
                answers[plan.at] = "reporting"
                return
            except Overtaken:
                continue
            passed[plan.at] = plan.order._replace(batch=bid, ledger=jid, status=NEW)
            return
        raise Overtaken

    async def _add(
        self, bid: str, plans: list[Plan], passed: dict[int, Order], answers: dict[int, Answer]
    ) -> None:
        """Make new jobs in the tree, in a batch or in none; those that it has are known."""
        token = plans[0].order.token
        refusals: dict[type[Exception], Refusal] = {
            UnknownBatch: "no-batch",
            BatchSealed: "sealed",
            LockLost: "lock-lost",
        }
        try:
            lock = self.batching.lock_of(bid, token) if bid and token else None
            added = await self.intake.add(bid, [self._newcomer(plan) for plan in plans], lock)
        except tuple(refusals) as error:
            answers |= dict.fromkeys((plan.at for plan in plans), refusals[type(error)])
            return
        for plan, each in zip(plans, added, strict=True):
            if each.created:
                passed[plan.at] = plan.order._replace(ledger=each.jid, status=NEW)
            else:
                answers[plan.at] = await self._known(plan, each)

    async def _known(self, plan: Plan, added: Added) -> Put:
        """Answer for a key that the batch has; a crash may have kept its job out of the line until now."""
        await self.bridge.bring([added.jid])
        [view] = await self.bridge.line.read([plan.order.id])
        return Put("known", view.job.record, view.job.version) if view else Put("known", 0, 0)

    def _newcomer(self, plan: Plan) -> Newcomer:
        order, old, now = plan.order, plan.view and plan.view.job, self.bridge.ledger.clock()
        return Newcomer(
            order,
            release=now + (order.delay or 0),
            version=old.version + 1 if old else 1,
            created_at=old.created_at if old and plan.live else now,
        )

    # ---------------------------------------------------------------- in the line

    async def _sent(
        self, plans: Sequence[Plan], passed: dict[int, Order], answers: dict[int, Answer]
    ) -> list[Answer]:
        """Let the line do what the tree has, and take back there what it refuses."""
        at = sorted(passed)
        told = await self.bridge.line.put([passed[number] for number in at]) if at else []
        again: list[Plan] = []
        for number, answer in zip(at, told, strict=True):
            plan, order = plans[number], passed[number]
            answers[number] = answer
            if plan.waits and isinstance(answer, Put) and answer.outcome == "known":
                again.append(plan)  # it began in the meantime, or the line has heard as much from the tree
            elif not plan.waits and order.ledger:
                answers[number] = await self._made(plan, order, answer)
        for plan in again:
            [answers[plan.at]] = await self.put([plan.order])
        await self._note_delays(plans, passed, answers)
        return [answers[plan.at] for plan in plans]

    async def _made(self, plan: Plan, order: Order, answer: Answer) -> Answer:
        """Look at what the line did with a job that is new in the tree."""
        if isinstance(answer, Put):
            if answer.outcome in ("created", "next-version"):
                return answer
            view = await self.bridge.version(order.id, answer.version)
            if view and view.job.ledger == order.ledger:
                return answer._replace(outcome="next-version" if plan.live else "created")
        older = plan.view.job.ledger if plan.view and order.batch == plan.view.job.batch else ""
        await self.intake.take_back(order.ledger, order.id, older)
        # Where another job waits for the key by now, this is a PUT of that job.
        return (await self.put([plan.order]))[0] if isinstance(answer, Put) else answer

    async def _note_delays(
        self, plans: Sequence[Plan], passed: dict[int, Order], answers: dict[int, Answer]
    ) -> None:
        """Write the places that the queue's policy chose to the tree."""
        settings = self.bridge.settings
        if not settings.per_recent:
            return
        for plan in plans:
            answer, order = answers[plan.at], passed.get(plan.at)
            chosen = order and not order.exempt and (order.delay is None or order.policy_floor)
            if order and chosen and isinstance(answer, Put) and answer.outcome in ("created", "next-version"):
                view = await self.bridge.version(order.id, answer.version)
                if view and view.release and view.job.ledger == order.ledger:
                    try:
                        entry = await self.bridge.jobs.place(order.ledger, release=view.release)
                    except (UnknownJob, AlreadyEnded, Overtaken):
                        continue
                    await self.bridge.line.said(answer.record, "", entry.mark)


def _without_doubles(orders: Sequence[Order]) -> Iterator[list[Order]]:
    """Split orders into runs in which no job is named twice."""
    some: list[Order] = []
    seen: set[str] = set()
    for order in orders:
        if order.id in seen:
            yield some
            some, seen = [], set()
        some.append(order)
        seen.add(order.id)
    if some:
        yield some
