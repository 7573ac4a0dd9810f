"""Reports go to the address that was asked for: in its form, until they arrive, and in nobody's way."""

import asyncio
import xml.etree.ElementTree as ET

import pytest

from maitred.core.batch import BatchState
from maitred.service.delivery import post
from maitred.wire import decode_json
from tests.service.address import Address, Reply
from tests.service.office import CSV, Office
from tests.waiting import eventually


@pytest.mark.parametrize(
    ("form", "media"),
    [("JSON", "application/json"), ("XML", "application/xml"), ("Turtle", "text/turtle")],
)
async def test_a_report_is_sent_in_the_form_that_was_asked_for(
    office: Office, address: Address, form: str, media: str
) -> None:
    id = await office.submit(payload=CSV, response_type=form, response_url=address.at("/r", Reply(200)))
    await office.clerk.work_off()
    await office.do_jobs()
    await office.clerk.work_off()
    [request] = address.requests
    assert (request.method, request.headers["content-type"]) == ("POST", media)
    assert f"{id}/3".encode() in request.body
    if form == "XML":
        assert ET.fromstring(request.body).get("batch") == id
    if form == "JSON":
        assert decode_json(request.body)["data"] == await office.report(id)


async def test_a_report_is_sent_again_until_it_arrives(office: Office, address: Address) -> None:
    url = address.at("/r", Reply(503), Reply(429), Reply(raw=b""), Reply(200))
    id = await office.submit(response_url=url)
    await office.clerk.work_off()
    for tries in (1, 2, 3):
        batch = await office.batch(id)
        assert (batch.unsent, batch.tries, len(address.requests)) == (True, tries, tries)
        assert batch.try_at > office.clock.now
        assert await office.clerk.work_off() == 0, "not before its time"
        office.later(1)
        await office.clerk.work_off()
    assert not (await office.batch(id)).unsent
    assert {request.headers["webhook-id"] for request in address.requests} == {f"{id}.1"}
    office.later(1000)
    assert await office.clerk.work_off() == 0


@pytest.mark.parametrize("status", [400, 404, 410, 302])
async def test_a_refused_report_is_given_up(office: Office, address: Address, status: int) -> None:
    id = await office.submit(response_url=address.at("/r", Reply(status)))
    await office.clerk.work_off()
    batch = await office.batch(id)
    assert (batch.unsent, batch.state) == (False, BatchState.COMPLETED)
    assert len(address.requests) == 1


async def test_addresses_that_keep_silent_do_not_keep_others_from_being_reported(
    office: Office, address: Address
) -> None:
    address.silent = True
    silent = [await office.submit(response_url=address.at("/r", Reply(200))) for _ in range(6)]
    task = asyncio.create_task(office.clerk.run())

    async def all_are_waiting() -> bool:
        return len(address.requests) == len(silent)

    await eventually(all_are_waiting)
    await office.completed(await office.submit())
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert {(await office.batch(id)).tries for id in silent} == {0}, "all of them are still waited for"


@pytest.mark.parametrize("reply", [Reply(200, endless=b"x"), Reply(503, endless=b"x" * 65536)])
async def test_an_answer_without_end_counts_by_its_status(address: Address, reply: Reply) -> None:
    answer, said = await post(address.at("/r", reply), b"{}", media_type="text/plain", id="b.1")
    assert (answer, said) == ("sent" if reply.status == 200 else "again", f"{reply.status} X")


async def test_a_head_that_never_ends_is_waited_for_so_long_and_no_longer(address: Address) -> None:
    slow = Reply(raw=b"HTTP/1.1 200 X\r\n", endless=b"X-More: 1\r\n")
    answer, said = await post(address.at("/r", slow), b"{}", media_type="text/plain", id="b.1", patience=0.2)
    assert answer == "again", said
