"""Keys of sessions: in a header or in the first frame, for the submitters that they name."""

import asyncio

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from maitred.client.session import Session
from maitred.errors import SessionDenied, Unauthorized
from maitred.service.keyring import Keys
from tests.sessions.parlour import ANN, Parlour

BOB = {"type": "user", "id": "bob"}


@pytest.fixture
def kind() -> str:
    """Override: keys are for a whole store, and others' tests have none."""
    return "memory"


@pytest.fixture
async def anns(parlour: Parlour) -> str:
    made = await Keys(parlour.stores.keyring).create("submitter", submitters=["user:ann"], name="ann's")
    assert made.key
    return made.key


async def test_a_browser_sends_its_key_in_the_first_frame(parlour: Parlour, anns: str) -> None:
    async with parlour.session("echo", "hello", key=anns) as guest:
        await guest.until("hello")
        session = guest.told[0]["session"]
        await guest.status("ended")
    for frame in ({"submitter": ANN}, {"submitter": ANN, "key": "mk_x_y"}, {"submitter": BOB, "key": anns}):
        async with parlour.guest() as guest:
            await guest.says({"command": ["true"], **frame})
            denied = await guest.status("denied")
            assert denied["code"] == ("forbidden" if frame["submitter"] == BOB else "unauthorized")
            assert await guest.closed() == 1008
    async with parlour.guest() as guest:
        await guest.says({"session": session})
        assert (await guest.status("denied"))["code"] == "unauthorized"


async def test_the_clients_key_goes_in_a_header(parlour: Parlour, anns: str) -> None:
    address = parlour.address.replace("ws:", "http:").partition("/api/")[0]
    session = Session(lambda: address, parlour.store.queue, key=anns)
    await session.open({"submitter": ANN, "command": ["true"]})
    async with asyncio.timeout(20):
        told = [word async for word in session.told()]
    assert told[-1] == {"status": "ended", "code": None, "exit": 0}
    with pytest.raises(SessionDenied):
        await Session(lambda: address, parlour.store.queue, key=anns).open(
            {"submitter": BOB, "command": ["true"]}
        )
    with pytest.raises(Unauthorized):
        await Session(lambda: address, parlour.store.queue, key="mk_no_key").open({})


async def test_a_viewers_key_opens_no_session(parlour: Parlour) -> None:
    viewer = (await Keys(parlour.stores.keyring).create("viewer")).key
    async with parlour.guest() as guest:
        await guest.says({"submitter": ANN, "command": ["true"], "key": viewer})
        assert (await guest.status("denied"))["code"] == "forbidden"
    with pytest.raises(InvalidStatus) as refused:
        await connect(parlour.address, additional_headers={"Authorization": f"Bearer {viewer}"})
    assert refused.value.response.status_code == 403


async def test_somebody_elses_session_is_not_taken_up(parlour: Parlour, anns: str) -> None:
    bobs = (await Keys(parlour.stores.keyring).create("submitter", submitters=["user:bob"])).key
    async with parlour.session(key=anns) as guest:
        name = guest.told[0]["session"]
        async with parlour.guest() as thief:
            await thief.says({"session": name, "key": bobs})
            assert (await thief.status("denied"))["code"] == "unknown-session"
        async with parlour.guest() as again:
            await again.says({"session": name, "key": anns})
            await again.status("started")
            await again.types("exit\n")
            await again.status("ended")


async def test_a_session_ends_with_its_key(parlour: Parlour, anns: str) -> None:
    keys = Keys(parlour.stores.keyring)
    async with parlour.session(key=anns) as guest:
        id = guest.told[0]["id"]
        await guest.types("echo a$((1+1))b\n")
        await guest.until("a2b")
        await keys.revoke(anns.split("_")[1])
        denied = await guest.status("denied")
        assert (denied["code"], "no longer good" in denied["reason"]) == ("unauthorized", True)
        assert await guest.closed() == 1008
    job = await parlour.ended(id)
    assert (job.code, "no longer good" in job.message) == ("cancelled", True)


async def test_sessions_are_in_the_audit_log(parlour: Parlour, anns: str) -> None:
    async with parlour.session("true", key=anns) as guest:
        id = guest.told[0]["id"]
        await guest.status("ended")
    [(_, note)] = await parlour.stores.keyring.notes(None, 10)
    assert all(word.encode() in note for word in (id, "ann's", "interactive", "127.0.0.1"))
