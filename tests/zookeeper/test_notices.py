"""What submitters are told, and jobs that nobody watches, on a queue whose ledger is a tree."""

import json

from maitred.core.job import Finish
from maitred.core.notices import Delivery
from maitred.core.settings import SECOND
from maitred.core.stages import INGEST
from tests.zookeeper.house import NEEDS, House, ingest

TOKEN = b"t" * 16


async def put(house: House, key: str, *, abandon: int = 0) -> None:
    """Submit a job with a response address."""
    run = {"args": {"payload_url": f"file:///{key}"}}
    body = {"key": key, "response_url": "http://127.0.0.1:9/", "run": run}
    order = ingest(key)._replace(body=json.dumps(body).encode(), callback=True, abandon=abandon)
    await house.store.put([order])


async def told(house: House) -> list[str]:
    """Tell everything that is to be told; give kind and code of each."""
    found = []
    while errands := await house.store.lock_notices("server", TOKEN, 10):
        for view, notice in errands:
            found.append(f"{notice.kind} {notice.code}".strip())
            tried = Delivery(notice.number, notice.kind, view.now, 0, "sent", "", 1)
            await house.store.told_notice(view.job.record, notice.number, TOKEN, tried)
            assert (await house.store.deliveries(view.job.id) or [])[-1] == tried
    return found


async def test_starts_and_ends_are_told_and_a_retry_of_the_tree_is_a_return(house: House) -> None:
    await put(house, "a")
    await house.work(fail=["a@provisioning"])
    assert await told(house) == ["started", "started", "ended error"]
    await house.store.retry("a")
    await house.work()
    assert await told(house) == ["requeued retried", *["started"] * (len(INGEST) - 1), "ended"]


async def test_a_cancelled_job_tells_its_end_once(house: House) -> None:
    await put(house, "a")
    await house.store.cancel("a", "cancelled by ann")
    await house.tree.tell(10)
    await house.tree.reconcile()
    assert await told(house) == ["ended cancelled"]


async def test_a_line_that_was_lost_still_knows_who_is_told_and_who_is_given_up(house: House) -> None:
    await put(house, "a", abandon=10 * SECOND)
    await house.line.remove("a")
    await house.tree.reconcile()
    job = await house.job("a")
    assert (job.callback, job.abandon) == (True, 10 * SECOND)
    await house.work()
    assert await told(house) == [*["started"] * len(INGEST), "ended"]


async def test_the_tree_hears_of_a_job_that_was_given_up(house: House) -> None:
    await put(house, "waits", abandon=10 * SECOND)
    await put(house, "runs", abandon=10 * SECOND)
    await house.store.hold("job", "waits", "ann", "")
    [start] = (await house.store.join("w", 1, NEEDS)).starts
    house.clock.now += 10 * SECOND
    await house.store.tick()
    await house.tree.tell(10)
    await house.store.finish("w", [Finish(start.lease, "stopped", status=start.status)])
    assert await house.states("waits") == ("failed", "failed")
    assert await house.states("runs") == ("failed", "failed")
    assert (await house.entry("runs")).standing.code == "abandoned"
    assert sorted(await told(house)) == ["ended abandoned", "ended abandoned", "started"]
