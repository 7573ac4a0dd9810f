"""Asking for a session: what the first frame must be, who may ask, and who is denied and why."""

import json
import logging
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from maitred.core.job import Phase
from tests.sessions.parlour import ANN, Parlour

GOOD: dict[str, Any] = {"submitter": ANN, "command": ["sh"]}


@pytest.mark.parametrize(
    ("frame", "paths"),
    [
        ("nonsense", [""]),
        ("[]", [""]),
        ({}, ["submitter", "command"]),
        ({**GOOD, "submitter": {"type": "robot", "id": ""}}, ["submitter.type", "submitter.id"]),
        ({**GOOD, "command": []}, ["command"]),
        ({**GOOD, "command": ["a\0b"]}, ["command.0"]),
        ({**GOOD, "files": {"../up": {"text": ""}, "x": {}}}, ["files.../up", "files.x"]),
        ({**GOOD, "terminal": [0, 24]}, ["terminal.0"]),
        ({**GOOD, "terminal": [80]}, ["terminal"]),
        ({**GOOD, "run": {}, "artifacts": ["x"]}, ["artifacts", "run"]),
        ({"session": 7}, ["session"]),
        ({"session": "x", "received": -1, "command": ["sh"]}, ["received", "command"]),
    ],
)
async def test_a_first_frame_with_faults_is_told_all_of_them(
    empty: Parlour, frame: object, paths: list[str]
) -> None:
    async with empty.guest() as guest:
        await guest.says(frame)
        assert await guest.closed() == 1008
        [denied] = guest.told
        assert (denied["status"], denied["code"]) == ("denied", "invalid")
        assert sorted(error["path"] for error in denied["errors"]) == sorted(paths)
        assert all(error["message"] for error in denied["errors"])
    assert (await empty.store.status()).jobs == 0


async def test_a_first_frame_of_bytes_is_a_fault(empty: Parlour) -> None:
    async with empty.guest() as guest:
        await guest.types("ls\r")
        assert await guest.closed() == 1008
        assert guest.told[0]["errors"][0]["message"].startswith("must be text")


async def test_what_is_too_large_for_the_queue_is_denied(empty: Parlour) -> None:
    await empty.set(max_body=1000)
    async with empty.guest() as guest:
        await guest.says({**GOOD, "files": {"big": {"text": "x" * 2000}}})
        assert (await guest.status("denied"))["code"] == "too-large"


async def test_without_a_worker_for_commands_a_session_is_denied(empty: Parlour) -> None:
    async with empty.guest() as guest:
        await guest.says({**GOOD, "key": "an API key, for browsers"})
        assert await guest.closed() == 1013
        assert [word["code"] for word in guest.told] == ["no-worker"]
    assert (await empty.store.status()).jobs == 0, "who is denied leaves no record"


async def test_who_has_a_session_is_denied_another_and_a_full_floor_denies_all(parlour: Parlour) -> None:
    async with parlour.session(), parlour.guest() as again:
        await again.says(GOOD)
        denied = await again.status("denied")
        assert denied["code"] == "per-submitter"
        assert "user:ann has as many sessions as are allowed: 1" in denied["reason"]
        async with parlour.session(submitter={"type": "team", "id": "ann"}), parlour.guest() as third:
            await third.says({**GOOD, "submitter": {"type": "user", "id": "bob"}})
            assert (await third.status("denied"))["code"] == "slots"


async def test_a_paused_queue_denies_and_says_who_paused_it(parlour: Parlour) -> None:
    await parlour.store.pause("ann", "new disks")
    async with parlour.guest() as guest:
        await guest.says(GOOD)
        denied = await guest.status("denied")
        assert (denied["code"], denied["reason"]) == ("paused", "the queue is paused by ann: new disks")


async def test_a_session_that_is_not_there_or_over_cannot_be_taken_up(parlour: Parlour) -> None:
    async with parlour.session() as guest:
        id, name = guest.told[0]["id"], guest.told[0]["session"]
        for wrong in (f"{id}.", f"{id}.x", name[:-1], f"{name}x", "x.y", id, f"x{name}"):
            async with parlour.guest() as other:
                await other.says({"session": wrong})
                assert await other.closed() == 1013
                assert other.told[0]["code"] == "unknown-session", wrong
        await guest.types("exit\r")
        await guest.status("ended")
    async with parlour.guest() as late:
        await late.says({"session": name})
        assert (await late.status("denied"))["code"] == "ended"


async def test_the_secret_of_a_session_opens_no_other_job(parlour: Parlour) -> None:
    await parlour.submits("sleep", "1000")
    async with parlour.session() as guest, parlour.guest() as thief:
        secret = guest.told[0]["session"].rpartition(".")[2]
        await thief.says({"session": f"job.{secret}"})
        assert (await thief.status("denied"))["code"] == "unknown-session"
    await parlour.store.cancel("job", "enough")


async def test_only_this_servers_own_pages_may_ask(empty: Parlour) -> None:
    for headers in ({"Origin": "http://evil.example"}, {"Origin": "null"}):
        with pytest.raises(InvalidStatus) as refused:
            await connect(empty.address, additional_headers=headers)
        assert refused.value.response.status_code == 403
        assert b"not-own-host" in (refused.value.response.body or b"")
    own = f"http{empty.address.removeprefix('ws').partition('/api')[0]}"
    async with connect(empty.address, origin=own):  # type: ignore[arg-type]
        pass


async def test_an_unknown_queue_is_a_problem_before_anything_else(empty: Parlour) -> None:
    with pytest.raises(InvalidStatus) as refused:
        await connect(empty.address.replace(empty.store.queue, "n%2Fope"))
    assert refused.value.response.status_code == 404
    assert b"there is no queue 'n/ope'" in (refused.value.response.body or b"")


async def test_a_plain_request_for_a_session_is_no_route(empty: Parlour) -> None:
    async with httpx.AsyncClient() as http:
        answer = await http.get(empty.address.replace("ws", "http", 1))
        assert answer.status_code == 404
        described = await http.get(
            f"{empty.address.partition('/api')[0].replace('ws', 'http', 1)}/openapi.json"
        )
        assert "/interactive`" in described.json()["info"]["description"]


async def test_a_later_text_frame_that_is_no_resize_closes_the_connection(parlour: Parlour) -> None:
    async with parlour.session() as guest:
        await guest.says({"resize": [80, 0]})
        assert await guest.closed() == 1008
        assert "resize" in (guest.connection.close_reason or "")
        id, name = guest.told[0]["id"], guest.told[0]["session"]
    assert (await parlour.job(id)).phase is Phase.RUNNING, "the session itself goes on"
    async with parlour.guest() as again:
        await again.says({"session": name})
        await again.status("started")
        await again.types("exit\r")
        await again.status("ended")


async def test_a_reason_to_close_that_is_long_in_bytes_is_cut_between_characters(parlour: Parlour) -> None:
    async with parlour.session() as guest:
        await guest.says(json.dumps({"ü" * 95: 1}, ensure_ascii=False))
        assert await guest.closed() == 1008
        assert (guest.connection.close_reason or "").endswith("üü")
        await parlour.store.cancel(guest.told[0]["id"], "enough")


async def test_what_a_client_did_wrong_is_told_to_it_and_is_no_fault_in_the_log(
    empty: Parlour, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("uvicorn.error"), "handlers", [caplog.handler])
    with pytest.raises(InvalidStatus):
        await connect(empty.address, additional_headers={"Origin": "null"})
    async with empty.guest() as guest:
        await guest.connection.send(b"\xff", text=True)
        assert await guest.closed() == 1007
    assert not caplog.records
