"""Watching what a job says: in order, before its end, and taken up again without gap or repeat."""

from maitred.core.job import Finish, Start
from maitred.core.output import Part, Saying
from maitred.core.settings import Settings
from tests.http.house import Event, House, rest, until


class Speaker:
    """A job that runs and says what the test wants."""

    def __init__(self, house: House, id: str, start: Start) -> None:
        self.house, self.id, self.start = house, id, start
        self.told = 0

    async def says(self, *parts: Part) -> None:
        saying = Saying(self.start.lease, parts, self.told)
        self.told += len(parts)
        assert await self.house.store.say("w", [saying]) == []

    async def ends(self, *said: Part) -> None:
        await self.house.store.finish("w", [Finish(self.start.lease, result=b"7", said=said)])


async def speaker(house: House) -> Speaker:
    id = (await house.guest.submits("talks", "user:1"))["id"]
    await house.works()
    return Speaker(house, id, house.held[-1])


def texts(events: list[Event]) -> list[str]:
    return [event.data["text"] for event in events if event.name == "output"]


async def test_a_watcher_hears_what_a_job_says_and_then_its_end(house: House) -> None:
    job = await speaker(house)
    async with house.watching(job.id) as stream:
        await until(stream, "state", phase="running")
        await job.says(Part("stdout", b"one\n"), Part("stderr", b"two\n"))
        first, second = await until(stream, "output"), await anext(stream)
        assert (first.data["number"], first.data["text"], first.data["cut"]) == (1, "one\n", 0)
        assert (second.data["number"], second.data["stream"]) == (2, "stderr")
        await job.says(Part("progress", b'{"fraction": 0.5, "message": "half"}'))
        step = await until(stream, "progress", fraction=0.5)
        assert (step.data["message"], step.data["number"]) == ("half", 3)
        await job.ends(Part("stdout", b"last", 12))
        ended = await rest(stream)
    assert [event.name for event in ended] == ["output", "state", "result"]
    assert (ended[0].data["text"], ended[0].data["cut"]) == ("last", 12)


async def test_a_watcher_hears_of_a_cancel_at_once_and_of_the_result_when_the_run_has_stopped(
    house: House,
) -> None:
    job = await speaker(house)
    async with house.watching(job.id) as stream:
        await until(stream, "state", phase="running")
        await house.guest.asks("POST", job.id, "/cancel")
        await until(stream, "state", code="cancelled")
        await job.says(Part("stdout", b"tidying up\n"))
        await until(stream, "output")
    async with house.watching(job.id) as stream:
        await until(stream, "state", code="cancelled")
        await job.ends(Part("stdout", b"done\n"))
        ended = await rest(stream)
    assert [event.name for event in ended] == ["output", "result"]
    assert (ended[1].data["result"], ended[1].data["code"]) == (7, "cancelled")


async def test_whoever_comes_later_hears_all_that_is_kept(house: House) -> None:
    job = await speaker(house)
    await job.says(Part("stdout", b"one\n"))
    async with house.watching(job.id) as stream:
        assert (await until(stream, "output")).data["text"] == "one\n"
        await job.ends(Part("stdout", b"two\n"))
        assert texts(await rest(stream)) == ["two\n"]
    async with house.watching(job.id) as stream:
        events = await rest(stream)
    assert [event.name for event in events] == ["output", "output", "state", "result"]


async def test_a_watcher_that_was_cut_off_goes_on_after_any_event(house: House) -> None:
    job = await speaker(house)
    async with house.watching(job.id) as stream:
        await until(stream, "state", phase="running")
        await job.says(Part("stdout", b"1"), Part("progress", b'{"fraction": 0, "message": ""}'))
        await job.says(Part("stdout", b"2"))
        await job.ends(Part("stdout", b"3"))
        events = await rest(stream)
    names = [event.name for event in events]
    assert names == ["output", "progress", "output", "output", "state", "result"]
    for at, event in enumerate(events[:-1]):
        async with house.watching(job.id, last=event.id) as stream:
            again = await rest(stream)
        assert [(e.name, e.data) for e in again] == [(e.name, e.data) for e in events[at + 1 :]]


async def test_a_watcher_that_missed_what_is_no_longer_kept_is_told_so(house: House) -> None:
    job = await speaker(house)
    async with house.watching(job.id) as stream:
        await job.says(Part("stdout", b"first"))
        first = await until(stream, "output")
    limit = Settings().output_limit
    for _ in range(limit // 50_000 + 1):
        await job.says(Part("stdout", b"x" * 50_000))
    async with house.watching(job.id, last=first.id) as stream:
        names = [(await anext(stream)).name for _ in range(3)]
        await job.ends()
        left = await rest(stream)
    assert names == ["reset", "state", "output"]
    assert [event.name for event in left][-2:] == ["state", "result"]


async def test_bytes_that_are_no_text_are_shown_as_far_as_they_can_be(house: House) -> None:
    job = await speaker(house)
    await job.ends(Part("stdout", b"\xff\x00ok"))
    async with house.watching(job.id) as stream:
        assert texts(await rest(stream)) == ["\ufffd\x00ok"]


async def test_many_watchers_of_one_job_hear_the_same(house: House) -> None:
    job = await speaker(house)
    async with house.watching(job.id) as one, house.watching(job.id) as other:
        await until(one, "state", phase="running")
        await until(other, "state", phase="running")
        for number in range(20):
            await job.says(Part("stdout", b"%d " % number))
        await job.ends()
        assert "".join(texts(await rest(one))) == "".join(texts(await rest(other)))
