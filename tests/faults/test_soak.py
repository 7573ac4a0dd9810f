"""Minutes of everything at once, with a seed: `make soak`, MAITRED_SOAK_SEED=7 MAITRED_SOAK_SECONDS=300.

Workers are killed, stopped and put to sleep, the store is killed, connections are cut, and meanwhile jobs are
put, put again, released, delayed, shortened, cancelled and deleted, in three classes, elastic and
interactive. At the end every accepted job has ended, none ran after its end, all rules hold, and nothing is
left.
"""

import asyncio
import contextlib
import os
import random
import secrets
from collections import Counter

import pytest

from maitred.core.job import Band, Order, Phase, Put
from maitred.errors import MaitredError, StoreError
from maitred.store.port import Store
from maitred.store.valkey.store import ValkeyStores
from tests.faults.cutting import Cutter
from tests.faults.scene import Scene
from tests.faults.turmoil import Turmoil
from tests.waiting import eventually

SECONDS = float(os.environ.get("MAITRED_SOAK_SECONDS", "120"))
WORKERS, SLOTS = 3, 6
FLOOR = """
elastic = "{policy}"
[queues.default.classes]
fast = {{cap = "100ms"}}
medium = {{cap = "400ms", limit = "50%"}}
slow = {{cap = "2s", limit = 2}}
[queues.default.interactive]
per_submitter = 3
"""


class Guests:
    """Those who submit, move, cancel and delete; they note what was acknowledged and what may have been."""

    def __init__(self, scene: Scene, store: Store, dice: random.Random) -> None:
        self.scene, self.store, self.dice = scene, store, dice
        self.accepted: set[str] = set()
        self.deleted: set[str] = set()
        self.done: Counter[str] = Counter()

    async def keep_coming(self, until: float) -> None:
        loop = asyncio.get_running_loop()
        number = 0
        while loop.time() < until:
            number += 1
            await self._once(number)
            # Arrivals are random; there is nothing to wait for.
            await asyncio.sleep(self.dice.expovariate(80))

    async def _once(self, number: int) -> None:
        verb = self.dice.choices(
            ["put", "again", "release", "delay", "cancel", "remove", "shorten", "admit"],
            [60, 5, 10, 10, 8, 7, 5, 5],
        )[0]
        key = f"j{number if verb == 'put' else self.dice.randrange(max(1, number - 60), number + 1)}"
        try:
            if verb in ("put", "again"):
                [answer] = await self.store.put([self._order(key)])
                # A waiting job cannot be made longer.
                assert isinstance(answer, Put) or answer == "longer-duration", answer
                self.accepted.add(key)
                self.deleted.discard(key)
            elif verb == "admit":
                await self.store.admit(self._order(f"i{number}"))
            elif verb == "shorten":
                await self.store.shorten(key, self.dice.choice([50_000, 400_000]))
            elif verb == "cancel":
                await self.store.cancel(key, "by a guest")
            elif verb == "remove":
                # What is not answered may have been done.
                self.deleted.add(key)
                await self.store.remove(key)
            else:
                await getattr(self.store, verb)(key)
        except StoreError:
            self.done["unanswered"] += 1
        except MaitredError:
            self.done[f"{verb} refused"] += 1
        else:
            self.done[verb] += 1

    def _order(self, key: str) -> Order:
        handler = self.dice.choice(["wait", "wait", "block"])
        level = self.dice.choice([None, None, 1, 2, 3])
        order = self.scene.call(handler, key, level, seconds=self.dice.choice([0.0, 0.01, 0.05, 0.3, 0.6]))
        band = self.dice.choice([Band.SCHEDULED, Band.SCHEDULED, Band.IMMEDIATE, Band.BULK])
        return order._replace(band=band, delay=self.dice.choice([0, 0, 500_000]))


async def keep_killing_the_store(scene: Scene, turmoil: Turmoil, until: float) -> None:
    loop = asyncio.get_running_loop()
    while loop.time() < until:
        await asyncio.sleep(turmoil.dice.uniform(3, 12))
        scene.server.kill()
        turmoil.count("store killed")
        await asyncio.sleep(turmoil.dice.uniform(0, 2))
        await scene.server.start()


@pytest.mark.soak
@pytest.mark.timeout(SECONDS + 300)
async def test_every_accepted_job_ends_once_through_minutes_of_turmoil(scene: Scene) -> None:
    seed = int(os.environ.get("MAITRED_SOAK_SEED", secrets.randbelow(1 << 32)))
    print(f"\nseed {seed}, {SECONDS:g} s")  # noqa: T201 - whoever repeats the run needs it
    policy = random.Random(seed).choice(["borrow", "squeeze"])
    scene.configure(100, FLOOR.format(policy=policy))
    await scene.store.configure(scene.settings)
    until = asyncio.get_running_loop().time() + SECONDS
    turmoil = Turmoil(scene, random.Random(seed))
    async with Cutter(scene.server.socket, random.Random(seed + 1), longest=60_000) as cutter:
        stores = ValkeyStores(cutter.url)
        guests = Guests(scene, stores.queue("default"), random.Random(seed + 2))
        await asyncio.gather(
            turmoil.keep_killing_workers(WORKERS, SLOTS, turmoil.clock() + SECONDS, cutter.url),
            guests.keep_coming(until),
            keep_killing_the_store(scene, turmoil, until),
        )
        await stores.close()
        cutter.longest = None

        async def all_ended() -> bool:
            # Each delay has put its job ten seconds further back; nobody wants to wait for that.
            for view in (await scene.store.line(None, 500)).views:
                with contextlib.suppress(MaitredError):
                    await scene.store.release(view.job.id)
            counts = (await scene.store.status()).counts
            return counts["pending"] == counts["processing"] == 0

        await eventually(all_ended, patience=120)
        await turmoil.stop_workers()
    state = await scene.is_clean()
    lost = {key for key in guests.accepted - guests.deleted if key not in state.newest}
    assert lost == set()
    assert {job.phase for job in state.jobs.values()} <= {Phase.ENDED}
    scene.assert_no_finished_job_ran_again(state)
    codes = Counter(job.code or "completed" for job in state.jobs.values())
    known = {"completed", "cancelled", "superseded", "cut", "time-limit", "halted"}
    assert set(codes) <= known, codes
    runs = len(scene.lines("begin"))
    print(f"accepted {len(guests.accepted)}, records {dict(codes)}, runs {runs}")  # noqa: T201
    print(f"guests {dict(guests.done)}; harm {turmoil.harm}, connections cut {cutter.cuts}")  # noqa: T201
