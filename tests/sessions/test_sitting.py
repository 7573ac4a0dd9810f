"""At a session: a terminal that is a real one, in which somebody far away types."""

import json

import pytest

from maitred.core.job import Band
from maitred.service.document import job_document
from tests.conftest import STORES
from tests.sessions.parlour import ANN, Parlour


class TestOnEveryStore:
    @pytest.fixture(params=STORES)
    def kind(self, request: pytest.FixtureRequest) -> str:
        return str(request.param)

    async def test_what_is_typed_reaches_the_program_and_its_end_the_client(self, parlour: Parlour) -> None:
        async with parlour.session() as guest:
            started = guest.told[0]
            assert started["session"].startswith(f"{started['id']}.")
            await guest.types("echo $((6 * 7)); exit 3\r")
            await guest.until("42")
            assert await guest.closed() == 1000
            assert guest.told[-1] == {"status": "ended", "code": "exit", "exit": 3}
        job = await parlour.ended(started["id"])
        assert (job.band, job.code, json.loads(job.result)) == (Band.INTERACTIVE, "exit", {"exit": 3})
        assert await parlour.store.check() == []


async def test_a_session_is_a_job_whose_secret_nobody_sees(parlour: Parlour) -> None:
    files = {"notes/a.txt": {"text": "hello"}}
    async with parlour.session("cat", "notes/a.txt", files=files) as guest:
        assert await guest.closed() == 1000
        assert guest.shown == b"hello"
        started, ended = guest.told
        assert ended == {"status": "ended", "code": None, "exit": 0}
    [view] = await parlour.store.read([started["id"]])
    assert view is not None
    document = job_document("q", view, parlour.settings)
    assert (document["band"], document["state"], document["submitter"]) == ("interactive", "completed", ANN)
    assert document["run"]["files"] == ["notes/a.txt"]
    secret = started["session"].removeprefix(f"{started['id']}.")
    assert secret not in json.dumps(document)
    assert secret not in view.job.body.decode()


async def test_the_terminal_has_the_size_of_the_clients(parlour: Parlour) -> None:
    async with parlour.session("sh", "-c", "stty size; read x; stty size", terminal=[100, 30]) as guest:
        await guest.until("30 100")
        await guest.says({"resize": [132, 43]})
        await guest.types("\r")
        await guest.until("43 132")
        assert (await guest.status("ended"))["code"] is None


async def test_a_terminal_has_80_columns_and_24_rows_unless_told_otherwise(parlour: Parlour) -> None:
    async with parlour.session("stty", "size") as guest:
        await guest.until("24 80")


async def test_ctrl_c_interrupts_the_program_and_not_its_shell(parlour: Parlour) -> None:
    async with parlour.session() as guest:
        await guest.types("echo be''gun; sleep 1000\r")
        await guest.until("begun")
        await guest.types("\x03")
        await guest.until(r"\$ $")
        await guest.types("echo $?\r")
        await guest.until("130")
        await guest.types("\x04")
        assert await guest.status("ended") == {"status": "ended", "code": None, "exit": 0}


async def test_all_that_was_printed_comes_before_the_end(parlour: Parlour) -> None:
    async with parlour.session("sh", "-c", "seq 20000; exit 9") as guest:
        assert await guest.closed() == 1000
        assert guest.shown.split() == [str(n).encode() for n in range(1, 20001)]
        assert guest.told[-1] == {"status": "ended", "code": "exit", "exit": 9}


async def test_a_program_that_is_not_there_ends_the_session(parlour: Parlour) -> None:
    async with parlour.session("no-such-program") as guest:
        ended = await guest.status("ended")
        assert (ended["code"], ended["exit"]) == ("command", None)


async def test_nothing_of_a_session_is_left_when_it_has_ended(parlour: Parlour) -> None:
    async with parlour.session("sh", "-c", "sleep 1000 & nohup sleep 1000 & echo up; exit 0") as guest:
        assert (await guest.status("ended"))["code"] is None
    assert await parlour.store.check() == []
    assert (await parlour.store.status()).free == 2


async def test_a_session_can_be_cancelled_as_any_job(parlour: Parlour) -> None:
    async with parlour.session() as guest:
        await guest.until(r"\$")
        await parlour.store.cancel(guest.told[0]["id"], "cancelled by ann: enough")
        assert (await guest.status("ended"))["code"] == "cancelled"
    async with parlour.session() as guest:
        await guest.until(r"\$")
        await parlour.store.remove(guest.told[0]["id"])
        assert (await guest.status("ended"))["code"] == "deleted"
