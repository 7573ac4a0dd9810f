"""How sessions end that nobody ended: warned, and then for a reason that is told."""

import asyncio

from maitred.core.job import Phase
from tests.sessions.parlour import Parlour


async def test_a_due_job_halts_a_session_which_is_warned_first(empty: Parlour) -> None:
    async with empty.worker(slots=1), empty.session() as guest:
        await guest.until(r"\$")
        await empty.submits("true")
        ended = await guest.status("ended")
        halting = await guest.status("halting")
        assert guest.told == [guest.told[0], halting, ended]
        assert (halting["code"], halting["reason"]) == ("halted", "a waiting job needs its slot")
        assert 0 < halting["seconds"] <= 0.4
        assert ended["code"] == "halted"
        assert (await empty.ended("job")).code == ""


async def test_a_session_that_is_halted_as_it_starts_leaves_nothing(empty: Parlour) -> None:
    async with empty.worker(slots=1):
        for pause in (0.0, 0.01, 0.03, 0.1):
            async with empty.session("sleep", "1000") as guest:
                await asyncio.sleep(pause)
                await empty.submits("true")
                assert (await guest.status("ended"))["code"] == "halted"
                assert (await empty.ended("job")).code == ""
        assert await empty.store.check() == []
        assert (await empty.store.status()).free == 1


async def test_a_session_has_its_kill_after_to_say_goodbye(empty: Parlour) -> None:
    await empty.set(kill_after=10.0)
    script = "trap 'echo bye; exit 5' TERM; echo up; while :; do sleep 0.1; done"
    async with empty.worker(slots=1), empty.session("sh", "-c", script) as guest:
        await guest.until("up")
        await empty.submits("true")
        await guest.until("bye")
        assert await guest.status("ended") == {"status": "ended", "code": "halted", "exit": 5}


async def test_who_does_not_type_is_warned_and_then_ended(empty: Parlour) -> None:
    await empty.set(interactive_idle=2.0)
    async with empty.worker(), empty.session("cat") as guest:
        halting = await guest.status("halting")
        assert (halting["code"], halting["reason"]) == ("idle", "nobody has typed for 2 s")
        assert 0 < halting["seconds"] <= 0.2
        assert (await guest.status("ended"))["code"] == "idle"
        job = await empty.ended(guest.told[0]["id"])
        assert (job.code, job.message) == ("idle", "nobody has typed for 2 s")


async def test_typing_calls_the_warning_off(empty: Parlour) -> None:
    await empty.set(interactive_idle=3.0)
    async with empty.worker(), empty.session("cat") as guest:
        await guest.status("halting")
        await guest.types("still here\r")
        await guest.until("still here.*still here")
        assert (await empty.job(guest.told[0]["id"])).phase is Phase.RUNNING
        guest.told[1:] = []
        await guest.status("halting")
        assert (await guest.status("ended"))["code"] == "idle"


async def test_a_session_has_a_hard_limit_however_much_is_typed(empty: Parlour) -> None:
    await empty.set(interactive_cap=2.0)
    async with empty.worker(), empty.session("cat") as guest:

        async def type_on() -> None:
            while True:
                await guest.types("x")
                await asyncio.sleep(0.05)

        typing = asyncio.create_task(type_on())
        halting = await guest.status("halting")
        ended = await guest.status("ended")
        typing.cancel()
        assert (halting["code"], halting["reason"]) == ("time-limit", "a session lasts at most 2 s")
        assert ended["code"] == "time-limit"


async def test_a_worker_that_is_stopped_warns_and_halts_its_sessions(empty: Parlour) -> None:
    async with empty.worker() as worker, empty.session() as guest:
        await guest.until(r"\$")
        worker.stop()
        halting = await guest.status("halting")
        assert (halting["code"], halting["reason"]) == ("halted", "its worker is being stopped")
        assert 0 < halting["seconds"] <= 2
        await guest.types("echo there is st''ill time\r")
        await guest.until("there is still time")
        assert (await guest.status("ended"))["code"] == "halted"
        job = await empty.ended(guest.told[0]["id"])
        assert (job.code, job.message) == ("halted", "its worker is being stopped")


async def test_a_worker_that_is_stopped_in_a_hurry_says_so(empty: Parlour) -> None:
    async with empty.worker() as worker, empty.session() as guest:
        await guest.until(r"\$")
        worker.hurry()
        assert (await guest.status("ended"))["code"] == "halted"
        reasons = {word["reason"] for word in guest.told if word["status"] == "halting"}
        assert reasons == {"its worker is being stopped"}
