"""Jobs that come from elsewhere with a state of their own: into the tree in one step, then into the line."""

from collections.abc import Sequence

from maitred.core.job import Job, Order, Phase, Restored
from maitred.core.stages import last_successful
from maitred.store.zookeeper.bridge import Bridge
from maitred.store.zookeeper.intake import Newcomer
from maitred.store.zookeeper.payloads import Reason


class Importing:
    """Takes jobs into one queue."""

    def __init__(self, bridge: Bridge) -> None:
        self.bridge = bridge

    async def take_in(self, jobs: Sequence[Job]) -> list[Restored]:
        """Make those that the line does not know; whoever died in the middle begins again."""
        views = await self.bridge.line.read([job.id for job in jobs])
        new = [job for job, view in zip(jobs, views, strict=True) if view is None]
        added = await self.bridge.ledger.intake.add("", [self._newcomer(job) for job in new])
        outcomes = await self.bridge.bring([each.jid for each in added])
        made = {job.id: outcomes.get(each.jid, "ignored") for job, each in zip(new, added, strict=True)}
        return [made.pop(job.id, "ignored") for job in jobs]

    def _newcomer(self, job: Job) -> Newcomer:
        stages = self.bridge.settings.stages
        state = job.state(stages)
        order = Order(
            job.id,
            job.submitter,
            job.need,
            job.body,
            band=job.band,
            priority=job.priority,
            level=job.level,
            elastic=job.elastic,
            duration=job.duration,
            expires_at=job.expires_at,
            abandon=job.abandon,
            profile=job.profile,
            exempt=job.exempt,
        )
        hold = job.hold
        holds = (Reason("job", job.id, hold.by, hold.reason, hold.at),) if hold else ()
        facts = {
            "stage": job.stage,
            "code": job.code,
            "message": job.message,
            "holds": holds if job.phase is Phase.HELD else (),
            "data": job.result if job.phase is Phase.ENDED and not job.code else job.data,
        }
        return Newcomer(
            order,
            release=job.release,
            arrival=job.arrival,
            created_at=job.created_at,
            state=state,
            last=last_successful(stages, job.stage, state) if job.stage else None,
            facts=facts,
        )
