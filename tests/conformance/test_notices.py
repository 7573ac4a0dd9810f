"""What submitters are told of their jobs: each start, each return to the line and each end, in order."""

from typing import Any

import pytest

from maitred.core.events import Noticed
from maitred.core.job import Lease
from maitred.core.notices import DELIVERIES_KEPT, MOST_NOTICES, Delivery, NoticeErrand
from maitred.core.settings import MINUTE, SECOND
from maitred.errors import LockLost
from maitred.store.port import Store
from tests.conformance.ledger import OTHER_TOKEN, TOKEN, Ledger

LEASE = 10 * MINUTE
LONG_AGO = 30 * 24 * 3600


async def open_with_one_stage(ledger: Ledger, **settings: Any) -> None:
    await ledger.open(stages=("one",), lease=LEASE, **settings)


async def lock(store: Store, token: bytes = TOKEN, limit: int = 100) -> list[NoticeErrand]:
    return await store.lock_notices("server", token, limit)


async def say(store: Store, errand: NoticeErrand, token: bytes = TOKEN, *, again_at: int = 0) -> None:
    """Say how the telling of a notice went: it arrived, or it is to be tried again."""
    notice = errand.notice
    answer = Delivery(
        notice.number, notice.kind, notice.at, notice.tries, "again" if again_at else "sent", "", 5, again_at
    )
    await store.told_notice(errand.view.job.record, notice.number, token, answer)


async def told(store: Store) -> list[tuple[str, str]]:
    """Tell everything that is to be told; give kind and code of each."""
    found: list[tuple[str, str]] = []
    while errands := await lock(store):
        for errand in errands:
            found.append((errand.notice.kind, errand.notice.code))
            await say(store, errand)
    return found


async def test_each_start_each_return_and_the_end_are_told_in_order(ledger: Ledger) -> None:
    await open_with_one_stage(ledger)
    await ledger.put("j", callback=True)
    await ledger.fail("j", "not now", transient=True)
    await ledger.tick(60)
    await ledger.done("j")
    assert await told(ledger.store) == [
        ("started", ""),
        ("requeued", "error"),
        ("started", ""),
        ("ended", ""),
    ]
    assert await lock(ledger.store) == []


async def test_a_job_without_an_address_tells_nothing(ledger: Ledger) -> None:
    await open_with_one_stage(ledger)
    await ledger.put("j")
    await ledger.done("j")
    assert await told(ledger.store) == []


async def test_a_notice_says_what_was_so_then_and_comes_with_the_job_as_it_is_now(ledger: Ledger) -> None:
    await open_with_one_stage(ledger)
    await ledger.put("j", callback=True, body=b"sent")
    started_at = ledger.clock.now
    await ledger.tick(1)
    await ledger.fail("j")
    [errand] = await lock(ledger.store)
    assert errand.notice[1:] == ("started", started_at, 1, 1, "w", "", 0, "", b"")
    assert errand.view.job.code == "error"
    assert errand.view.job.body == b"sent"
    assert [errand.view] == await ledger.store.read(["j"])


async def test_the_next_stage_is_a_start_and_no_return(ledger: Ledger) -> None:
    await ledger.open(stages=("one", "two"))
    await ledger.put("j", callback=True)
    await ledger.done("j", 2)
    assert await told(ledger.store) == [("started", ""), ("started", ""), ("ended", "")]


async def test_a_job_that_is_handed_back_or_lost_returns(ledger: Ledger) -> None:
    await open_with_one_stage(ledger)
    await ledger.put("j", callback=True)
    await ledger.store.hand_back("w", [ledger.lease("j")])
    await ledger.look()
    await ledger.store.leave("w")
    await ledger.tick(601)
    assert await told(ledger.store) == [
        ("started", ""),
        ("requeued", "handed-back"),
        ("started", ""),
        ("requeued", "lost"),
    ]


async def test_a_retry_is_a_return(ledger: Ledger) -> None:
    await open_with_one_stage(ledger)
    await ledger.put("j", callback=True)
    await ledger.fail("j")
    await ledger.retry("j")
    assert await told(ledger.store) == [
        ("started", ""),
        ("ended", "error"),
        ("requeued", "retried"),
        ("started", ""),
    ]


@pytest.mark.parametrize("end", ["cancel", "expire", "never ran"])
async def test_every_end_is_told(ledger: Ledger, end: str) -> None:
    await open_with_one_stage(ledger, slots=0)
    expires_at = ledger.clock.now + SECOND if end == "expire" else 0
    await ledger.put("j", callback=True, expires_at=expires_at, delay=9 * SECOND)
    if end == "never ran":
        await ledger.hold("job", "j")
    if end != "expire":
        await ledger.store.cancel("j", "cancelled by ann: no")
    await ledger.tick(2)
    assert await told(ledger.store) == [("ended", "expired" if end == "expire" else "cancelled")]


async def test_a_deleted_job_tells_nothing_more(ledger: Ledger) -> None:
    await open_with_one_stage(ledger)
    await ledger.put("j", callback=True)
    [errand] = await lock(ledger.store)
    await ledger.store.remove("j")
    with pytest.raises(LockLost):
        await say(ledger.store, errand)
    assert await ledger.store.deliveries("j") is None
    assert await told(ledger.store) == []


async def test_a_superseded_version_does_not_tell_its_end(ledger: Ledger) -> None:
    await open_with_one_stage(ledger, slots=1)
    await ledger.put("j", callback=True)
    await ledger.put("j", callback=True)
    await ledger.store.hand_back("w", [ledger.lease("j")])
    [old] = await ledger.store.read(["j"], 1)
    assert old
    assert old.job.code == "superseded"
    assert await told(ledger.store) == [("started", ""), ("started", "")]


async def test_a_newer_version_tells_after_what_the_older_had_to_tell(ledger: Ledger) -> None:
    await open_with_one_stage(ledger)
    await ledger.put("j", callback=True)
    await ledger.done("j")
    assert await ledger.put("j", callback=True) == "created"
    versions = []
    while errands := await lock(ledger.store):
        [errand] = errands
        versions.append((errand.view.job.version, errand.notice.kind))
        await say(ledger.store, errand)
    assert versions == [(1, "started"), (1, "ended"), (2, "started")]


async def test_who_has_locked_a_notice_tells_it_alone_until_the_lock_is_over(ledger: Ledger) -> None:
    await open_with_one_stage(ledger)
    await ledger.put("j", callback=True)
    [first] = await lock(ledger.store)
    assert await lock(ledger.store, OTHER_TOKEN) == []
    ledger.clock.now += LEASE
    [again] = await lock(ledger.store, OTHER_TOKEN)
    assert again.notice == first.notice
    with pytest.raises(LockLost):
        await say(ledger.store, first)
    await say(ledger.store, again, OTHER_TOKEN)
    with pytest.raises(LockLost):
        await say(ledger.store, again, OTHER_TOKEN)


async def test_only_the_notice_that_is_locked_can_be_told(ledger: Ledger) -> None:
    await open_with_one_stage(ledger)
    await ledger.put("j", callback=True)
    [errand] = await lock(ledger.store)
    wrong = errand._replace(notice=errand.notice._replace(number=errand.notice.number + 1))
    with pytest.raises(LockLost):
        await say(ledger.store, wrong)
    with pytest.raises(LockLost):
        await say(ledger.store, errand, b"")
    await say(ledger.store, errand)


async def test_what_did_not_arrive_is_tried_again_then_and_the_rest_waits_for_it(ledger: Ledger) -> None:
    await open_with_one_stage(ledger)
    await ledger.put("j", callback=True)
    await ledger.done("j")
    [errand] = await lock(ledger.store)
    again_at = ledger.clock.now + 5 * SECOND
    await say(ledger.store, errand, again_at=again_at)
    ledger.clock.now = again_at - 1
    assert await lock(ledger.store) == []
    ledger.clock.now = again_at
    [again] = await lock(ledger.store)
    assert again.notice == errand.notice._replace(tries=1)
    await say(ledger.store, again)
    assert await told(ledger.store) == [("ended", "")]


async def test_the_longest_due_are_told_first_and_no_more_than_asked_for(ledger: Ledger) -> None:
    await open_with_one_stage(ledger)
    for id in ("c", "a", "b"):
        ledger.clock.now += 1
        await ledger.put(id, callback=True)
    assert [each.view.job.id for each in await lock(ledger.store, limit=2)] == ["c", "a"]
    assert [each.view.job.id for each in await lock(ledger.store, limit=2)] == ["b"]


async def test_a_job_is_not_swept_before_it_has_told_all_and_others_are(ledger: Ledger) -> None:
    await open_with_one_stage(ledger, slots=0)
    for first in range(0, 300, 100):
        ids = [f"t{n}" for n in range(first, first + 100)]
        for id in ids:
            await ledger.put(id, callback=True, delay=SECOND)
            await ledger.store.cancel(id, "")
    ledger.clock.now += SECOND
    await ledger.put("silent", delay=SECOND)
    await ledger.store.cancel("silent", "")
    await ledger.tick(LONG_AGO)
    assert (await ledger.store.status()).jobs == 300
    assert await ledger.store.read(["silent"]) == [None]
    assert (await ledger.store.ended(0, 10)).total == 300
    assert len(await told(ledger.store)) == 300
    await ledger.tick()
    await ledger.tick()
    assert (await ledger.store.status()).jobs == 0


async def test_the_jobs_of_a_batch_that_is_gone_tell_what_they_have_to(ledger: Ledger) -> None:
    await open_with_one_stage(ledger)
    bid = await ledger.batch_of("x", "tells", callback=True)
    await ledger.put("silent", batch=bid)
    await ledger.store.seal_batch(bid)
    await ledger.done("tells")
    await ledger.done("silent")
    await ledger.report(bid)
    await ledger.store.remove_batch(bid)
    assert await ledger.store.read(["silent"]) == [None]
    assert (await ledger.job("tells")).batch == ""
    assert await told(ledger.store) == [("started", ""), ("ended", "")]
    await ledger.tick(LONG_AGO)
    assert await ledger.store.read(["tells"]) == [None]


async def test_too_many_notices_of_one_job_lose_the_oldest_but_no_end(ledger: Ledger) -> None:
    await open_with_one_stage(ledger, slots=1, attempts=1_000)
    await ledger.put("j", callback=True)
    await ledger.fail("j")
    await ledger.retry("j")
    for _ in range(MOST_NOTICES):
        lease = ledger.lease("j")
        await ledger.store.hand_back("w", [Lease(lease.record, lease.token)])
        await ledger.look()
        await ledger.store.take("w")
        [start] = [start for start in (await ledger.store.renew("w", [])).starts if start.id == "j"]
        ledger.runs["j"] = "w", start
    await ledger.done("j")
    kinds = [kind for kind, _ in await told(ledger.store)]
    assert len(kinds) == MOST_NOTICES
    assert (kinds[0], kinds[1], kinds[-1]) == ("started", "ended", "ended")


async def test_every_try_is_logged_of_its_version_and_the_last_hundred_are_kept(ledger: Ledger) -> None:
    await open_with_one_stage(ledger)
    await ledger.put("j", callback=True)
    assert await ledger.store.deliveries("j") == []
    assert await ledger.store.deliveries("k") is None
    [errand] = await lock(ledger.store)
    for count in range(DELIVERIES_KEPT + 5):
        await say(ledger.store, errand, again_at=ledger.clock.now + 1)
        ledger.clock.now += 1
        [errand] = await lock(ledger.store)
        assert errand.notice.tries == count + 1
    await say(ledger.store, errand)
    log = await ledger.store.deliveries("j", 1)
    assert log
    assert [entry.tries for entry in log] == list(range(6, DELIVERIES_KEPT + 6))
    assert (log[0].answer, log[-1].answer, log[-1].kind) == ("again", "sent", "started")
    assert await ledger.store.deliveries("j", 2) is None


async def test_a_long_answer_is_kept_in_part(ledger: Ledger) -> None:
    await open_with_one_stage(ledger)
    await ledger.put("j", callback=True)
    [errand] = await lock(ledger.store)
    notice = errand.notice
    answer = Delivery(notice.number, notice.kind, 7, 0, "refused", "é" * 10_000, 5)
    await ledger.store.told_notice(errand.view.job.record, notice.number, TOKEN, answer)
    assert await ledger.store.deliveries("j") == [answer._replace(said="é" * 500)]


async def test_whoever_listens_hears_that_there_is_something_to_tell(ledger: Ledger) -> None:
    await open_with_one_stage(ledger)
    survey = await ledger.store.survey(60)
    await ledger.put("j", callback=True)
    await ledger.put("k")
    heard = [entry.events for entry in await ledger.store.news(survey.last_id, 1)]
    assert [Noticed() in events for events in heard] == [True, False]
