"""Reports go to the address that was asked for: in its form, until they arrive, and in nobody's way."""

import asyncio
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from maitred.core.batch import BatchState
from maitred.core.settings import SECOND, Settings
from maitred.errors import ForgedWebhook
from maitred.service.delivery import Message, Tried, back_off
from maitred.store.port import Store
from maitred.webhooks import verify
from maitred.wire import decode_json
from tests.conftest import Clock
from tests.service.address import Address, Reply
from tests.service.office import CSV, QUICK, Office, opened
from tests.service.post import postman
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
        told = decode_json(request.body)
        assert (told["type"], told["data"]["id"]) == ("batch.reported", id)
        assert told["data"]["report"] == await office.report(id)


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
    told = {request.headers["webhook-id"] for request in address.requests}
    assert told == {await office.message_id(id)}
    assert [request.headers["maitred-attempt"] for request in address.requests] == ["1", "2", "3", "4"]
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


async def test_a_report_is_signed_with_the_secret_of_whoever_submitted_it(
    office: Office, address: Address
) -> None:
    await office.submit(response_url=address.at("/r", Reply(200)))
    await office.clerk.work_off()
    [request] = address.requests
    [secret] = await office.keys.signing("local")
    assert verify(secret, request.headers, request.body) == request.headers["webhook-id"]
    with pytest.raises(ForgedWebhook):
        verify(secret, request.headers, request.body + b" ")


MESSAGE = Message("m_1", "local", b"{}")


async def tried(address: Address, reply: Reply, *, patience: float = 15.0) -> Tried:
    """Send a message once to an address that replies so."""
    return await postman(patience=patience).post(address.at("/r", reply), MESSAGE, private=True)


@pytest.mark.parametrize("reply", [Reply(200, endless=b"x"), Reply(503, endless=b"x" * 65536)])
async def test_an_answer_without_end_counts_by_its_status(address: Address, reply: Reply) -> None:
    answer, said, _ = await tried(address, reply)
    assert (answer, said) == ("sent" if reply.status == 200 else "again", f"{reply.status} X")


async def test_a_head_that_never_ends_is_waited_for_so_long_and_no_longer(address: Address) -> None:
    slow = Reply(raw=b"HTTP/1.1 200 X\r\n", endless=b"X-More: 1\r\n")
    answer, said, _ = await tried(address, slow, patience=0.2)
    assert answer == "again", said


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 200 X\r\nContent-Length: 100\r\n\r\nshort",
        b"HTTP/1.1 204 X\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\nnot a length\r\n",
        b"HTTP/1.0 200 X\r\n\r\n",
    ],
    ids=["too short", "too long", "no chunks", "old"],
)
async def test_whoever_takes_a_message_and_lies_about_the_rest_has_taken_it(
    address: Address, raw: bytes
) -> None:
    assert (await tried(address, Reply(raw=raw))).answer == "sent"


@pytest.mark.parametrize("raw", [b"", b"hello\r\n\r\n", b"HTTP/1.1 2000 X\r\n\r\n", b"HTTP/1.1 200"])
async def test_what_is_no_answer_is_tried_again(address: Address, raw: bytes) -> None:
    assert (await tried(address, Reply(raw=raw))).answer == "again"


@pytest.mark.parametrize("status", [408, 429, 500, 503])
async def test_a_receiver_that_cannot_take_it_now_is_asked_later(address: Address, status: int) -> None:
    assert (await tried(address, Reply(status))).answer == "again"


@pytest.mark.parametrize("status", [301, 307, 400, 401, 404, 410, 413])
async def test_a_receiver_that_refuses_or_points_elsewhere_is_not_asked_again(
    address: Address, status: int
) -> None:
    elsewhere = address.at("/elsewhere", Reply(200))
    answer, said, _ = await tried(address, Reply(status, headers=(f"Location: {elsewhere}",)))
    assert (answer, said[:3]) == ("refused", str(status))
    assert ("redirects are not followed" in said) == (status < 400)
    assert [request.path for request in address.requests] == ["/r"]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("7", 7), ("0", 0), ("999999999999999", 3600), ("Wed, 21 Oct 2099 07:28:00 GMT", 3600), ("soon", 0)],
)
async def test_a_receiver_may_say_how_long_it_wants_to_be_left_alone(
    address: Address, text: str, seconds: int
) -> None:
    answer, _, wait = await tried(address, Reply(503, headers=(f"Retry-After: {text}",)))
    assert (answer, wait) == ("again", seconds * SECOND)
    assert back_off(Settings(), 0, wait) >= wait


def test_the_pause_between_tries_grows_to_a_bound_and_is_never_the_same() -> None:
    settings = Settings(backoff=SECOND, most_backoff=60 * SECOND)
    for tries in (0, 3, 6, 300):
        longest = min(60, 2**tries) * SECOND
        pauses = [back_off(settings, tries) for _ in range(50)]
        assert longest / 2 <= min(pauses) < max(pauses) <= longest


async def test_cookies_of_a_receiver_are_not_sent_back(address: Address) -> None:
    sender = postman()
    url = address.at("/r", Reply(200, headers=("Set-Cookie: a=b",)))
    for _ in range(2):
        await sender.post(url, MESSAGE, private=True)
    assert all("cookie" not in request.headers for request in address.requests)


async def test_a_message_of_a_key_that_is_gone_is_not_sent(address: Address) -> None:
    sender = postman()
    url = address.at("/r", Reply(200))
    answer, said, _ = await sender.post(url, MESSAGE._replace(by="gone"), private=True)
    assert (answer, said) == ("refused", "it cannot be signed: there is no key 'gone'")
    assert not address.requests


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:{port}/r",
        "http://localhost:{port}/r",
        "http://2130706433:{port}/r",
        "http://0x7f.1:{port}/r",
        "http://[::ffff:127.0.0.1]:{port}/r",
        "http://user:password@127.0.0.1:{port}/r",
    ],
)
async def test_a_private_address_is_refused_unless_it_is_allowed(address: Address, url: str) -> None:
    address.at("/r", Reply(200))
    sender = postman()
    answer, said, _ = await sender.post(url.format(port=address.port), MESSAGE, private=False)
    assert (answer, said.partition(":")[0]) == ("refused", "private address")
    assert "password" not in said
    assert not address.requests
    assert (await sender.post(url.format(port=address.port), MESSAGE, private=True)).answer == "sent"


async def test_a_name_that_leads_nowhere_is_tried_again() -> None:
    sender = postman()
    tried = await sender.post("http://nobody.invalid/r", MESSAGE, private=True)
    assert tried.answer == "again"


async def test_a_report_is_not_sent_into_a_private_network_by_itself(
    store: Store, clock: Clock, address: Address
) -> None:
    office = await opened(store, clock, replace(QUICK, private_addresses=False))
    id = await office.submit(response_url=address.at("/r", Reply(200)))
    await office.clerk.work_off()
    assert not (await office.batch(id)).unsent
    fetched = await office.submit(payload_filename=address.at("/m", Reply(body=CSV.encode())))
    await office.clerk.work_off()
    assert "private network" in (await office.batch(fetched)).fault
    assert not address.requests
