"""Clients that drop come back to their session, at any server; one has it at a time."""

import httpx

from tests.sessions.parlour import Guest, Parlour

COUNT = "stty -echo; echo go; i=0; while read x; do i=$((i+1)); echo line $i $x; done"


async def lines(guest: Guest, *words: str) -> None:
    for word in words:
        await guest.types(f"{word}\r")
        await guest.until(f"line [0-9]+ {word}\r\n")


async def test_a_client_that_drops_goes_on_at_another_server_at_the_byte_where_it_was(
    parlour: Parlour,
) -> None:
    async with parlour.server() as other:
        async with parlour.session("sh", "-c", COUNT) as guest:
            name = guest.told[0]["session"]
            await guest.until("go\r\n")
            await lines(guest, "a", "b")
            await guest.types("c\rd\r")
        had = len(guest.shown)
        async with parlour.guest(other) as again:
            await again.says({"session": name, "received": had, "terminal": [60, 20]})
            started = await again.status("started")
            assert (started["session"], started["at"]) == (name, had)
            await lines(again, "e")
            whole = (guest.shown + again.shown).decode()
            assert whole == "go\r\n" + "".join(f"line {n} {x}\r\n" for n, x in enumerate("abcde", 1))


async def test_a_client_that_does_not_say_what_it_has_is_shown_the_last_screens(parlour: Parlour) -> None:
    script = "seq 30000; echo do''ne; stty size; cat"
    async with parlour.session("sh", "-c", script) as guest:
        name = guest.told[0]["session"]
        await guest.until("done\r\n24 80\r\n")
    async with parlour.guest() as again:
        await again.says({"session": name})
        started = await again.status("started")
        await again.until("done\r\n24 80\r\n")
        assert len(again.shown) == 64 << 10
        assert guest.shown.endswith(again.shown)
        assert started["at"] == len(guest.shown) - len(again.shown)


async def test_what_is_no_longer_kept_is_told_as_cut(empty: Parlour) -> None:
    await empty.set(output_limit=100_000)
    async with empty.worker():
        async with empty.session("sh", "-c", "seq 30000; echo do''ne; cat") as guest:
            name = guest.told[0]["session"]
            await guest.until("done\r\n")
        async with empty.guest() as again:
            await again.says({"session": name, "received": 10})
            cut = await again.status("cut")
            await again.until("done\r\n")
            assert 10 + cut["bytes"] + len(again.shown) == len(guest.shown)
            assert guest.shown.endswith(again.shown)


async def test_a_newer_client_takes_over_and_the_older_is_told(parlour: Parlour) -> None:
    async with parlour.server() as other, parlour.session("cat") as guest:
        await guest.types("one\r")
        await guest.until("one.*one")
        async with parlour.guest(other) as newer:
            await newer.says({"session": guest.told[0]["session"]})
            await newer.status("started")
            assert await guest.closed() == 4001
            assert guest.connection.close_reason == "another client has taken the session up"
            await newer.types("two\r")
            await newer.until("two.*two")
            assert b"two" not in guest.shown


async def test_a_session_to_which_nobody_comes_back_is_abandoned(empty: Parlour) -> None:
    async with empty.worker(), empty.server(comeback=1.0) as short:
        async with empty.session("cat", url=short) as guest:
            await guest.types("here\r")
            await guest.until("here.*here")
        job = await empty.ended(guest.told[0]["id"])
        assert job.code == "abandoned"
        async with empty.guest(short) as late:
            await late.says({"session": guest.told[0]["session"]})
            assert (await late.status("denied"))["code"] == "ended"


async def test_who_only_watches_a_session_does_not_keep_it(empty: Parlour) -> None:
    async with empty.worker(), empty.server(comeback=1.0) as short:
        async with empty.session("cat", url=short) as guest:
            id = guest.told[0]["id"]
        url = f"{short.replace('ws', 'http', 1).removesuffix('interactive')}jobs/{id}/events"
        async with httpx.AsyncClient(timeout=30) as http, http.stream("GET", url) as watching:
            seen = [line async for line in watching.aiter_lines()]
        assert any("abandoned" in line for line in seen)


async def test_a_client_that_stays_is_never_abandoned_though_nothing_happens(empty: Parlour) -> None:
    await empty.set(interactive_idle=4.0)
    async with (
        empty.worker(),
        empty.server(comeback=1.0) as short,
        empty.session("cat", url=short) as guest,
    ):
        assert (await guest.status("ended"))["code"] == "idle"


async def test_a_warning_that_holds_is_told_to_whoever_comes_back(empty: Parlour) -> None:
    await empty.set(grace=10.0)
    async with empty.worker() as worker:
        async with empty.session("cat") as guest:
            worker.stop()
            first = await guest.status("halting")
        async with empty.guest() as again:
            await again.says({"session": guest.told[0]["session"]})
            halting = await again.status("halting")
            assert (halting["reason"], again.told[0]["status"]) == (first["reason"], "started")
            assert halting["seconds"] < first["seconds"]
            await again.types("\x04")
            assert (await again.status("ended"))["code"] is None
