"""Minutes of everything at once in a queue with stages and batches: `make soak`, MAITRED_SOAK_SECONDS=300.

Servers and workers are killed, stopped and put to sleep, the store is killed and connections are cut, while
jobs and batches are submitted, held, paused, retried, moved, cancelled and deleted. At the end every accepted
job has ended, no finished stage began again, every batch is reported, all rules hold, and nothing is left.
"""

import asyncio
import contextlib
import os
import random
import secrets
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable

import pytest

from maitred.core.batch import BatchOrder, BatchState
from maitred.core.job import Order, Phase, Put
from maitred.core.snapshot import Snapshot
from maitred.core.stages import INGEST
from maitred.errors import MaitredError, StoreError
from maitred.store.port import Store
from maitred.store.valkey.store import ValkeyStores
from maitred.wire.codec import decode_body, decode_json, encode_json
from tests.faults.crew import Crew
from tests.faults.cutting import Cutter
from tests.faults.ingest import prepare, settled
from tests.faults.scene import QUEUE, U1, Scene
from tests.waiting import eventually

SECONDS = float(os.environ.get("MAITRED_SOAK_SECONDS", "120"))
PROFILES = ["dryad", "etd"]
VERBS = {
    "put": 40,
    "again": 4,
    "batch": 6,
    "cancel": 4,
    "remove": 4,
    "retry": 4,
    "retry_row": 12,
    "remove_row": 4,
    "prioritise": 5,
    "release": 4,
    "hold": 6,
    "unhold": 6,
    "hold_batch": 4,
    "unhold_batch": 10,
    "hold_profile": 2,
    "unhold_profile": 6,
    "update_batch": 8,
    "remove_batch": 1,
    "pause": 1,
    "resume": 4,
}
ENDS = (BatchState.COMPLETED, BatchState.FAILED)


class Guests:
    """Those who submit and meddle; they note what was acknowledged, and what may have been deleted."""

    def __init__(self, store: Store, dice: random.Random) -> None:
        self.store, self.dice = store, dice
        self.accepted: set[str] = set()
        self.deleted: set[str] = set()
        self.batches: list[str] = []
        self.gone: set[str] = set()
        self.done: Counter[str] = Counter()

    async def keep_coming(self, until: float) -> None:
        loop = asyncio.get_running_loop()
        number = 0
        while loop.time() < until:
            number += 1
            verb = self.dice.choices(list(VERBS), list(VERBS.values()))[0]
            try:
                await self._do(verb, number)
            except StoreError:
                self.done["unanswered"] += 1
            except MaitredError:
                self.done[f"{verb} refused"] += 1
            else:
                self.done[verb] += 1
            # Arrivals are random; there is nothing to wait for.
            await asyncio.sleep(self.dice.expovariate(30))

    async def _do(self, verb: str, number: int) -> None:
        key = f"j{self.dice.randrange(max(1, number - 60), number + 1)}"
        batch = self.dice.choice(self.batches[-8:]) if self.batches else "bid0000000000"
        profile = self.dice.choice(PROFILES)
        store = self.store
        calls: dict[str, Callable[[], Awaitable[object]]] = {
            "put": lambda: self._put(f"j{number}"),
            "again": lambda: self._put(key),
            "batch": lambda: self._submit(number),
            "cancel": lambda: store.cancel(key, "by a guest"),
            "remove": lambda: store.remove(key),
            "retry": lambda: store.retry(key),
            "prioritise": lambda: store.prioritise(key, self.dice.randrange(10)),
            "release": lambda: store.release(key),
            "hold": lambda: store.hold("job", key, "a guest", ""),
            "unhold": lambda: store.unhold("job", key),
            "hold_batch": lambda: store.hold("batch", batch, "a guest", ""),
            "unhold_batch": lambda: store.unhold("batch", batch),
            "hold_profile": lambda: store.hold("profile", profile, "a guest", ""),
            "unhold_profile": lambda: store.unhold("profile", profile),
            "retry_row": lambda: self._with_a_row(batch, store.retry),
            "remove_row": lambda: self._with_a_row(batch, store.remove),
            "update_batch": lambda: store.update_batch(batch),
            "remove_batch": lambda: store.remove_batch(batch),
            "pause": lambda: store.pause("a guest", ""),
            "resume": store.resume,
        }
        # What is not answered may have been done.
        self.deleted |= {key} if verb == "remove" else set()
        self.gone |= {batch} if verb == "remove_batch" else set()
        await calls[verb]()

    async def _with_a_row(self, batch: str, verb: Callable[[str], Awaitable[object]]) -> None:
        rows = (await self.store.batch_rows(batch, 0, 50)).rows
        if rows:
            await verb(self.dice.choice(rows).id)

    def _trouble(self) -> str:
        kind = self.dice.choice(["", "", "", "transient", "hopeless"])
        return f"{kind}:{self.dice.choice(INGEST)}" if kind else ""

    async def _put(self, key: str) -> None:
        args = {"trouble": self._trouble(), "seconds": 0.05}
        body = encode_json({"key": key, "run": {"args": args}})
        order = Order(key, U1, "stage:estimating", body, profile=self.dice.choice(PROFILES))
        [answer] = await self.store.put([order])
        if isinstance(answer, Put):
            self.accepted.add(key)
            self.deleted.discard(key)
        else:
            assert answer == "reporting", answer

    async def _submit(self, number: int) -> None:
        rows = [f"{self._trouble()},0.05\n" for _ in range(self.dice.randint(0, 40))]
        body = {
            "external_id": f"b{number}",
            "submitter": {"type": U1.type, "id": U1.id},
            "payload": "trouble,seconds\n" + "".join(rows),
            "profile_name": self.dice.choice(PROFILES),
        }
        order = BatchOrder(f"b{number}", U1, body["profile_name"], encode_json(body), True, True)  # type: ignore[arg-type]
        self.batches.append((await self.store.create_batch(order)).id)


async def let_all_go_on(store: Store) -> None:
    """Take every hold and the pause away, and let what was put to its place at the end come first."""
    await store.resume()
    state = await store.snapshot()
    for held in state.holds.values():
        with contextlib.suppress(MaitredError):
            await store.unhold(held.kind, held.name)
    for job in state.jobs.values():
        if job.hold:
            with contextlib.suppress(MaitredError):
                await store.unhold("job", job.id)


def assert_no_finished_stage_began_again(scene: Scene, state: Snapshot) -> None:
    begins: dict[tuple[str, int], int] = defaultdict(int)
    for line in scene.lines("begin"):
        begins[line.key, line.version] = max(begins[line.key, line.version], line.at)
    for job in state.jobs.values():
        key = decode_body(job.body)["key"]
        assert job.phase is Phase.ENDED, key
        accepted = [run for run in job.timeline if not run.code]
        assert [run.stage for run in accepted] == list(range(1, len(accepted) + 1)), (key, job.timeline)
        assert job.code or len(accepted) == len(INGEST), key
        for run in accepted:
            name = f"{key}@{INGEST[run.stage - 1]}"
            assert begins[name, job.version] <= run.end, f"{name} began again after it was finished"


def assert_every_batch_was_reported(state: Snapshot, guests: Guests) -> None:
    assert set(guests.batches) - state.batches.keys() <= guests.gone, "no batch is lost"
    for batch in state.batches.values():
        assert batch.state in ENDS, (batch.id, batch.state)
        assert batch.sequence >= 1
        assert (batch.fault, batch.unsent) == ("", False)
        report = decode_json(batch.report)
        assert report["sequence"] == batch.sequence
        if batch.sequence == 1:
            told = Counter(row["id"] for end in ("completed", "failed", "deleted") for row in report[end])
            assert told == Counter(batch.rows.keys()), "each row is told once"


@pytest.mark.soak
@pytest.mark.timeout(SECONDS + 300)
async def test_every_job_and_batch_ends_once_through_minutes_of_turmoil(scene: Scene) -> None:
    seed = int(os.environ.get("MAITRED_SOAK_SEED", secrets.randbelow(1 << 32)))
    print(f"\nseed {seed}, {SECONDS:g} s")  # noqa: T201 - whoever repeats the run needs it
    await prepare(scene)
    async with Cutter(scene.server.socket, random.Random(seed), longest=100_000) as cutter:
        stores = ValkeyStores(cutter.url)
        guests = Guests(stores.queue(QUEUE), random.Random(seed + 1))
        ways = ("kill", "kill", "sleep", "stop")
        crew = Crew(scene, random.Random(seed + 2), ways=ways, url=cutter.url)
        await crew.come_up()
        async with crew.under_fire(life=1.5, store_life=6.0):
            await guests.keep_coming(asyncio.get_running_loop().time() + SECONDS)
        await stores.close()
        cutter.longest = None
        await let_all_go_on(scene.store)

        async def all_ended() -> bool:
            await asyncio.sleep(0.2)
            state = await scene.store.snapshot()
            waiting = [job for job in state.jobs.values() if job.phase is not Phase.ENDED]
            return not waiting and all(batch.state in ENDS for batch in state.batches.values())

        await eventually(all_ended, patience=120)
        await crew.leave()
    state = await settled(scene)
    lost = {key for key in guests.accepted - guests.deleted if key not in state.newest}
    assert lost == set()
    assert_no_finished_stage_began_again(scene, state)
    assert_every_batch_was_reported(state, guests)
    codes = Counter(job.code or "completed" for job in state.jobs.values())
    assert set(codes) <= {"completed", "error", "cancelled", "superseded"}, codes
    updates = Counter(batch.sequence for batch in state.batches.values())
    print(f"records {dict(codes)}, batches by reports {dict(updates)}, killed {dict(crew.kills)}")  # noqa: T201
    print(f"guests {dict(guests.done)}, connections cut {cutter.cuts}")  # noqa: T201
