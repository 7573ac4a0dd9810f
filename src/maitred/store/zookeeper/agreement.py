"""Whether line and tree agree, on a live store: what differs is looked at again before it is named.

| code | what is wrong |
|---|---|
| `ledger-unknown-here` | the tree has a job that has not ended, and the line does not know it |
| `ledger-unknown-there` | the line has a job that the tree does not know |
| `ledger-state` | they have a job in different states, and nobody is about to say so |
| `ledger-hold` | a hold of many is in one of them only |
"""

from maitred.core.invariants import Violation
from maitred.core.job import Phase
from maitred.store.zookeeper.bridge import Bridge
from maitred.store.zookeeper.reconciling import Reconciling
from maitred.store.zookeeper.records import JobEntry
from maitred.store.zookeeper.restoring import job_of


async def disagreements(bridge: Bridge) -> list[Violation]:
    """List where line and tree differ; nothing, if all is well."""
    first = await _look(bridge)
    if not first:
        return []
    again = await _look(bridge)
    return [violation for violation in again if violation in first]


async def _look(bridge: Bridge) -> list[Violation]:
    found: list[Violation] = []
    async for entry in bridge.ledger.unended():
        job = job_of(entry, bridge.settings)
        view = await bridge.version(job.id, job.version)
        if view is None or view.job.ledger != entry.jid:
            found.append(
                Violation("ledger-unknown-here", f"{entry.jid} is {entry.state}, and is not in line")
            )
    unsaid = {view.job.record for view in (await bridge.line.unsaid(1_000)).views}
    async for views in Reconciling(bridge).kept():
        known = [view for view in views if view.job.ledger]
        entries = await bridge.read([view.job.ledger for view in known])
        for view, other in zip(known, entries, strict=True):
            if other is None:
                text = f"{view.job.id} is {view.job.ledger}, which is not in the tree"
                found.append(Violation("ledger-unknown-there", text))
            elif view.job.record not in unsaid and view.job.phase is not Phase.RUNNING:
                found += _differing(view.job.state(bridge.settings.stages), other)
    here: set[tuple[str, str]] = {(held.kind, held.name) for held in (await bridge.line.status()).holds}
    there = {(held.kind, held.name) for held in await bridge.ledger.holds()}
    flags = {flag for flag in here ^ there if flag[0] != "batch"}
    found += [Violation("ledger-hold", f"{kind} {name} is held in one of them only") for kind, name in flags]
    return found


def _differing(state: str, entry: JobEntry) -> list[Violation]:
    if state == entry.state:
        return []
    return [
        Violation("ledger-state", f"{entry.jid} is {entry.state}, and {state} in line (v{entry.version})")
    ]
