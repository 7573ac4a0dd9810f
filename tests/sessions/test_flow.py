"""What flows through a session is bounded both ways, and nothing of it is lost."""

import asyncio
import hashlib

from maitred.http.limits import Limits
from tests.sessions.parlour import Parlour
from tests.waiting import eventually

PASTED = b"".join(b"%07d %s\n" % (n, hashlib.sha256(b"%d" % n).hexdigest().encode()) for n in range(70_000))


async def test_five_megabytes_that_are_pasted_arrive_whole(parlour: Parlour) -> None:
    assert len(PASTED) > 5_000_000
    async with parlour.session("sh", "-c", "stty raw -echo; echo go; exec cat") as guest:
        await guest.until("go\n")

        async def paste() -> None:
            for first in range(0, len(PASTED), 100_000):
                await guest.connection.send(PASTED[first : first + 100_000])

        pasting = asyncio.create_task(paste())
        while len(guest.shown) < len(PASTED) + 3:
            assert await guest.hears(), (len(guest.shown), guest.told, guest.connection.close_reason)
        await pasting
        assert guest.shown[3:] == PASTED


async def test_a_program_waits_for_a_client_that_does_not_read_and_loses_nothing(parlour: Parlour) -> None:
    async with parlour.session("sh", "-c", "stty raw; seq 1200000; echo done") as guest:

        async def last() -> int:
            output = await parlour.store.output(guest.told[0]["id"], None, 1 << 50, 1)
            assert output is not None
            assert not output.ended, "it has not waited for anybody"
            return output.last

        async def stands_still() -> bool:
            before = await last()
            await asyncio.sleep(0.5)
            return before > 10 and before == await last()

        await eventually(stands_still)
        assert await guest.closed() == 1000
        assert guest.shown == b"".join(b"%d\n" % n for n in range(1, 1_200_001)) + b"done\n"
        assert [word["status"] for word in guest.told] == ["started", "ended"]


async def test_a_client_that_never_reads_is_cut_and_the_session_is_given_up(parlour: Parlour) -> None:
    async with (
        parlour.server(comeback=1.0, limits=Limits(stall=0.05)) as url,
        parlour.session("sh", "-c", "stty raw; yes", url=url) as guest,
    ):
        job = await parlour.ended(guest.told[0]["id"])
        assert job.code == "abandoned"
        assert await guest.closed() == 1006


async def test_a_client_waits_for_a_program_that_does_not_read(parlour: Parlour) -> None:
    script = "stty raw -echo; echo go; read x < gate; exec head -c 2000000"
    async with parlour.session("sh", "-c", f"mkfifo gate; (sleep 2; echo > gate) & {script}") as guest:
        await guest.until("go\n")
        await guest.connection.send(PASTED[:2_000_000])
        assert await guest.closed() == 1000
        assert guest.shown[3:] == PASTED[:2_000_000]


async def test_small_limits_are_no_less_whole(empty: Parlour) -> None:
    await empty.set(output_limit=4096)
    async with empty.worker(), empty.session("sh", "-c", "stty raw -echo; echo go; exec cat") as guest:
        await guest.until("go\n")
        await guest.connection.send(PASTED[:100_000])
        while len(guest.shown) < 100_003:
            assert await guest.hears(), (len(guest.shown), guest.told)
        assert guest.shown[3:] == PASTED[:100_000]
