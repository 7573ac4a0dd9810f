"""Submitters are told of each start, return and end of their jobs: in order, signed, and until it arrives."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from maitred.core.job import Finish
from maitred.core.notices import LOCKED_FOR
from maitred.core.settings import SECOND
from maitred.errors import ForgedWebhook, StoreUnavailable, UnknownJob
from maitred.service import courier as courier_module
from maitred.service.keyring import LOCAL, Keys
from maitred.service.queue import Queue
from maitred.service.receivers import Receivers
from maitred.store.port import Stores
from maitred.webhooks import verify
from maitred.wire import JobDocument, decode_body
from tests.conftest import Clock
from tests.service.address import Address, Reply, listening
from tests.service.errands import QUICK, Errands, told
from tests.waiting import eventually


@pytest.fixture
async def errands(stores: Stores, queue_name: str, clock: Clock) -> Errands:
    errands = Errands(stores, queue_name, clock)
    await errands.store.configure(QUICK)
    return errands


@contextlib.asynccontextmanager
async def at_work(errands: Errands, receivers: Receivers | None = None) -> AsyncIterator[None]:
    """Let a courier work as long as the block lasts."""
    task = asyncio.create_task(errands.courier(receivers=receivers).run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_start_and_end_are_told_with_the_job_as_it_was_then(errands: Errands, address: Address) -> None:
    id = await errands.submits("k", address.at("/r", Reply(200)), metadata={"a": "b"})
    await errands.works()
    errands.later(2)
    await errands.ends(id)
    assert await errands.courier().work_off() == 2
    first, last = told(address)
    assert (first["type"], last["type"]) == ("job.started", "job.ended")
    started, ended = first["data"], last["data"]
    assert (started["id"], started["key"], started["metadata"]) == (id, "k", {"a": "b"})
    assert (started["state"], started["phase"], started["stage"]) == ("processing", "running", "processing")
    assert (started["attempt"], started["worker"], started["result"]) == (1, "w", None)
    assert [run["end"] for run in started["timeline"]] == [None]
    assert (ended["state"], ended["phase"], ended["result"]) == ("completed", None, {"points": 7})
    assert ended["worker"] == (await errands.desk.read(errands.queue, id))["worker"] == "w"
    assert [run["end"] for run in ended["timeline"]] == [last["timestamp"]]
    assert first["timestamp"] < last["timestamp"]
    for each in (started, ended):
        JobDocument.model_validate({**each, "run": {}})
        assert "run" not in each, "what was to be run is not repeated"
        assert "submitted_by" not in each


async def test_a_job_without_an_address_is_told_to_nobody(errands: Errands) -> None:
    id = await errands.submits("k", None)
    await errands.works()
    await errands.ends(id)
    assert await errands.courier().work_off() == 0
    assert await errands.log(id) == []


async def test_a_message_is_signed_for_the_key_that_submitted_the_job(
    errands: Errands, address: Address
) -> None:
    url = address.at("/r", Reply(200))
    id = await errands.submits("k", url)
    [view] = await errands.store.read([id])
    assert view
    assert decode_body(view.job.body)["submitted_by"] == LOCAL
    assert "submitted_by" not in await errands.desk.read(errands.queue, id)
    await errands.works()
    await errands.courier().work_off()
    [old] = await errands.keys.signing(LOCAL)
    await errands.keys.rotate(LOCAL)
    await errands.ends(id)
    await errands.courier().work_off()
    new, _ = await errands.keys.signing(LOCAL)
    first, second = address.requests
    assert verify(old, first.headers, first.body) == first.headers["webhook-id"]
    for secret in (old, new, [old, new]):
        assert verify(secret, second.headers, second.body) == second.headers["webhook-id"]
    with pytest.raises(ForgedWebhook):
        verify(new, first.headers, first.body)


async def test_a_repeat_has_the_same_id_and_the_number_of_its_try(errands: Errands, address: Address) -> None:
    id = await errands.submits("k", address.at("/r", Reply(503), Reply(raw=b""), Reply(200)))
    await errands.works()
    for _ in range(3):
        assert await errands.courier().work_off() == 1
        assert await errands.courier().work_off() == 0, "not before its time"
        errands.later(1)
    await errands.ends(id)
    await errands.courier().work_off()
    ids = [request.headers["webhook-id"] for request in address.requests]
    assert len(set(ids[:3])) == 1
    assert ids[3] not in ids[:3]
    assert [request.headers["maitred-attempt"] for request in address.requests] == ["1", "2", "3", "1"]
    assert len({request.body for request in address.requests[:3]}) == 1, "it tells the same each time"
    log = await errands.log(id)
    assert [each["id"] for each in log] == ids
    assert [(each["type"], each["attempt"], each["answer"]) for each in log] == [
        ("job.started", 1, "again"),
        ("job.started", 2, "again"),
        ("job.started", 3, "sent"),
        ("job.ended", 1, "sent"),
    ]
    assert [each["next_at"] is None for each in log] == [False, False, True, True]
    assert (log[0]["said"], log[-1]["said"]) == ("503 X", "200 X")


async def test_what_happened_later_is_told_later_whatever_the_receiver_does(
    errands: Errands, address: Address
) -> None:
    id = await errands.submits("k", address.at("/r", Reply(503), Reply(200)))
    await errands.works()
    await errands.ends(id, "transient", b"", transient=True)
    errands.later(10)
    await errands.store.tick()
    await errands.ends(id)
    for _ in range(8):
        await errands.courier().work_off()
        errands.later(1)
    kinds = [each["type"].removeprefix("job.") for each in told(address)]
    assert kinds == ["started", "started", "requeued", "started", "ended"]
    requeued, again = told(address)[2]["data"], told(address)[3]["data"]
    assert (requeued["state"], requeued["phase"], requeued["worker"]) == ("processing", "waiting", None)
    assert (requeued["attempt"], again["attempt"]) == (1, 2)
    assert again["timeline"][0]["attempt"] == 1


@pytest.mark.parametrize("status", [400, 404, 410, 302])
async def test_a_refusal_is_shown_and_not_tried_again_and_the_rest_is_told(
    errands: Errands, address: Address, status: int
) -> None:
    id = await errands.submits("k", address.at("/r", Reply(status), Reply(200)))
    await errands.works()
    await errands.ends(id, "exit")
    await errands.courier().work_off()
    errands.later(1000)
    assert await errands.courier().work_off() == 0
    refused, sent = await errands.log(id)
    assert (refused["answer"], refused["said"][:3], refused["next_at"]) == ("refused", str(status), None)
    assert (sent["type"], sent["answer"]) == ("job.ended", "sent")
    ended = told(address)[1]["data"]
    assert (ended["state"], ended["code"], ended["message"]) == ("failed", "exit", "no good")


async def test_a_private_address_is_shown_as_refused_and_not_tried_again(
    errands: Errands, address: Address
) -> None:
    await errands.store.configure(replace(QUICK, private_addresses=False))
    id = await errands.submits("k", address.at("/r", Reply(200)))
    await errands.works()
    await errands.courier().work_off()
    errands.later(1000)
    assert await errands.courier().work_off() == 0
    [refused] = await errands.log(id)
    assert (refused["answer"], refused["said"].partition(":")[0]) == ("refused", "private address")
    assert not address.requests


async def test_a_receiver_that_never_comes_back_is_given_up(
    errands: Errands, address: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(courier_module, "MOST_TRIES", 3)
    id = await errands.submits("k", address.at("/r", Reply(500)))
    await errands.works()
    for _ in range(5):
        await errands.courier().work_off()
        errands.later(1)
    *_, last = await errands.log(id)
    assert (last["answer"], last["said"]) == ("refused", "given up after 3 tries: 500 X")
    assert len(address.requests) == 3


async def test_a_receiver_is_left_alone_for_as_long_as_it_asks(errands: Errands, address: Address) -> None:
    await errands.submits("k", address.at("/r", Reply(429, headers=("Retry-After: 60",)), Reply(200)))
    await errands.works()
    await errands.courier().work_off()
    errands.later(59)
    assert await errands.courier().work_off() == 0
    errands.later(2)
    assert await errands.courier().work_off() == 1


async def test_a_courier_that_dies_after_sending_leaves_the_same_to_another(
    errands: Errands, address: Address
) -> None:
    id = await errands.submits("k", address.at("/r", Reply(200)))
    await errands.works()
    [(view, notice)] = await errands.store.lock_notices("dead", b"x" * 16, 1)
    assert (view.job.id, notice.kind) == (id, "started")
    assert await errands.courier().work_off() == 0, "somebody else has it"
    errands.later(LOCKED_FOR / SECOND)
    assert await errands.courier().work_off() == 1


async def test_a_job_that_is_deleted_is_told_no_more(errands: Errands, address: Address) -> None:
    id = await errands.submits("k", address.at("/r", Reply(200)))
    await errands.works()
    await errands.store.remove(id)
    assert await errands.courier().work_off() == 0
    with pytest.raises(UnknownJob):
        await errands.log(id)


async def test_an_end_that_was_undone_by_a_retry_is_told_as_it_was(
    errands: Errands, address: Address
) -> None:
    id = await errands.submits("k", address.at("/r", Reply(200)))
    await errands.works()
    await errands.hears()
    lease = errands.running.pop(id).lease
    await errands.store.finish("w", [Finish(lease, "exit", "exit status 1", b'{"exit":1}')])
    await errands.store.retry(id)
    await errands.hears()
    await errands.courier().work_off()
    kinds = [(each["type"], each["data"]["phase"], each["data"]["code"]) for each in told(address)]
    assert kinds == [
        ("job.started", "running", None),
        ("job.ended", None, "exit"),
        ("job.requeued", "waiting", "retried"),
        ("job.started", "running", None),
    ]
    assert [(each["data"]["message"], each["data"]["result"]) for each in told(address)] == [
        (None, None),
        ("exit status 1", {"exit": 1}),
        (None, None),
        (None, None),
    ]


async def test_the_end_of_a_cancelled_run_is_told_when_it_has_stopped_with_what_it_had_done(
    errands: Errands, address: Address
) -> None:
    id = await errands.submits("k", address.at("/r", Reply(200)))
    await errands.works()
    await errands.hears()
    await errands.courier().work_off()
    await errands.store.cancel(id, "cancelled by ann")
    assert await errands.courier().work_off() == 0
    lease = errands.running.pop(id).lease
    await errands.store.finish("w", [Finish(lease, "cancelled", result=b'{"exit":-15}')])
    errands.later(1)
    assert await errands.courier().work_off() == 1
    data = told(address)[-1]["data"]
    assert (data["code"], data["message"], data["result"]) == ("cancelled", "cancelled by ann", {"exit": -15})


async def test_a_receiver_that_hangs_does_not_keep_others_from_being_told(
    errands: Errands, address: Address
) -> None:
    address.silent = True
    await errands.works(200)
    for number in range(150):
        await errands.submits(f"hangs {number}", address.at("/r", Reply(200)))
    async with listening() as other, at_work(errands, Receivers(2, 0.05)):

        async def all_turns_are_taken() -> bool:
            return len(address.requests) == 2

        await eventually(all_turns_are_taken)
        await errands.submits("k", other.at("/r", Reply(200)))
        await asyncio.wait_for(other.arrived.wait(), 30)
        assert len(address.requests) == 2, "no more than that are on the way at once"


async def test_a_receiver_that_answers_gets_all_that_there_is_at_once(
    errands: Errands, address: Address
) -> None:
    await errands.works(200)
    for number in range(150):
        await errands.submits(f"k {number}", address.at("/r", Reply(200)))
    async with at_work(errands, Receivers(longest_turn=60)):

        async def all_have_come() -> bool:
            return len(address.requests) == 150

        await eventually(all_have_come)
    assert len({request.headers["webhook-id"] for request in address.requests}) == 150


async def test_a_receiver_that_comes_back_gets_all_that_it_missed_in_order(
    errands: Errands, address: Address
) -> None:
    url = address.at("/r", *[Reply(503)] * 7, Reply(200))
    await errands.works(5)
    ids = [await errands.submits(f"k {number}", url) for number in range(5)]
    for id in ids:
        await errands.ends(id)

    async def everything_was_told() -> bool:
        errands.later(1)
        logs = [await errands.log(id) for id in ids]
        return all(log and (log[-1]["type"], log[-1]["answer"]) == ("job.ended", "sent") for log in logs)

    async with at_work(errands, Receivers(longest_turn=60)):
        await eventually(everything_was_told)
    for id in ids:
        arrived = [each["type"] for each in await errands.log(id) if each["answer"] == "sent"]
        assert arrived == ["job.started", "job.ended"]


async def test_settings_of_a_queue_bound_the_pause_between_tries(
    stores: Stores, queue_name: str, clock: Clock, address: Address
) -> None:
    settings = replace(QUICK, backoff=60 * SECOND, most_backoff=60 * SECOND)
    errands = Errands(stores, queue_name, clock, settings)
    await errands.store.configure(settings)
    await errands.submits("k", address.at("/r", Reply(503)))
    await errands.works()
    await errands.courier().work_off()
    errands.later(29)
    assert await errands.courier().work_off() == 0
    errands.later(32)
    assert await errands.courier().work_off() == 1


async def test_a_program_sees_the_tries_too(errands: Errands, stores: Stores, address: Address) -> None:
    id = await errands.submits("k", address.at("/r", Reply(200)))
    await errands.works()
    await errands.courier().work_off()
    [only] = await Queue(errands.queue, stores).deliveries(id)
    assert (only.type, only.answer, only.attempt) == ("job.started", "sent", 1)


async def test_a_store_that_goes_away_before_a_message_is_signed_leaves_it_for_later(
    errands: Errands, address: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = await errands.submits("k", address.at("/r", Reply(200)))
    await errands.works()
    with monkeypatch.context() as away:

        async def gone(_keys: Keys, _id: str) -> list[str]:
            raise StoreUnavailable

        away.setattr(Keys, "signing", gone)
        assert await errands.courier().work_off() == 1
    assert (address.requests, await errands.log(id)) == ([], [])
    errands.later(LOCKED_FOR / SECOND)
    assert await errands.courier().work_off() == 1
    assert [each["answer"] for each in await errands.log(id)] == ["sent"]
