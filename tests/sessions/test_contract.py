"""The row of sessions in the HTTP contract: each frame as it is written."""

from tests.sessions.parlour import ANN, Parlour


async def test_ws_interactive(parlour: Parlour) -> None:
    async with parlour.guest() as guest:
        files = {"a.txt": {"text": "in a file"}}
        await guest.says({"submitter": ANN, "command": ["sh"], "files": files})
        started = await guest.status("started")
        assert {"id", "session"} <= started.keys()
        await guest.says({"resize": [132, 43]})
        await guest.types("stty size; cat a.txt\r")
        await guest.until("43 132.*in a file")
    async with parlour.guest() as back, parlour.guest() as second:
        await back.says({"session": started["session"]})
        assert (await back.status("started"))["id"] == started["id"]
        await second.says({"submitter": ANN, "command": ["sh"]})
        assert (await second.status("denied"))["reason"]
        await back.types("exit 3\r")
        assert await back.status("ended") == {"status": "ended", "code": "exit", "exit": 3}
    job = await parlour.job(started["id"])
    assert job.band.name == "INTERACTIVE"


async def test_ws_interactive_that_is_halted_is_told_when_and_why(empty: Parlour) -> None:
    async with empty.worker(slots=1), empty.session() as guest:
        # One that is halted before its program runs has nothing to be warned of.
        await guest.until(r"\$")
        await empty.submits("true")
        halting = await guest.status("halting")
        assert {"seconds", "reason"} <= halting.keys()
        assert (await guest.status("ended")).keys() == {"status", "code", "exit"}
