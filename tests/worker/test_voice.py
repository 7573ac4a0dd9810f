"""What runs say: gathered, told in order and once, with their end after all of it."""

import asyncio
from collections.abc import Sequence
from typing import Any

from structlog.testing import capture_logs

from maitred.core.job import Lease, Phase
from maitred.core.output import Chunk, Part, Saying
from maitred.core.settings import Settings
from maitred.errors import StoreUnavailable
from maitred.store.passing_on import PassingOn
from maitred.store.port import Store
from maitred.wire.codec import decode_json
from maitred.worker import Worker, current_job
from maitred.worker.stage_job import StageJob
from maitred.worker.voice import PART_LIMIT, Words
from tests.waiting import eventually
from tests.worker.conftest import Kitchen
from tests.working import at_work

LIMIT = 1000


def words(*parts: Part) -> tuple[Part, ...]:
    gathered = Words(LIMIT)
    for part in parts:
        gathered.add(part)
    return gathered.take_all()


async def said(kitchen: Kitchen, id: str = "job") -> list[Chunk]:
    output = await kitchen.store.output(id, None, 0, 10_000)
    assert output is not None
    return output.chunks


# ---------------------------------------------------------------- gathering


def test_what_one_stream_says_is_put_together_and_streams_stay_in_order() -> None:
    assert words(Part("stdout", b"a"), Part("stdout", b"b"), Part("stderr", b"c"), Part("stdout", b"d")) == (
        Part("stdout", b"ab"),
        Part("stderr", b"c"),
        Part("stdout", b"d"),
    )


def test_a_part_is_never_larger_than_it_may_be_and_none_is_lost() -> None:
    text = "žluťoučký kůň ".encode() * 20_000
    parts = words(Part("stdout", text))
    assert b"".join(part.data for part in parts) == text
    assert max(len(part.data) for part in parts) <= PART_LIMIT
    for part in parts:
        part.data.decode()


def test_text_is_divided_between_characters() -> None:
    gathered = Words(LIMIT)
    gathered.add(Part("stdout", "10 €".encode()[:-1]))
    assert gathered.take(LIMIT) == (Part("stdout", b"10 "),)
    gathered.add(Part("stderr", b"!"))
    gathered.add(Part("stdout", "€".encode()[-1:]))
    assert gathered.take(LIMIT) == (Part("stderr", b"!"), Part("stdout", "€".encode()))
    gathered.add(Part("stdout", b"\xe2"))
    assert not gathered
    assert gathered.open
    assert gathered.take_all() == (Part("stdout", b"\xe2"),)


def test_what_is_no_text_goes_through_as_it_is() -> None:
    assert words(Part("stdout", b"\x80\x80\x80\x80")) == (Part("stdout", b"\x80\x80\x80\x80"),)


def test_only_the_last_progress_is_told() -> None:
    assert words(Part("progress", b"1"), Part("stdout", b"a"), Part("progress", b"2")) == (
        Part("stdout", b"a"),
        Part("progress", b"2"),
    )


def test_what_a_handler_says_is_cut_at_its_limit_and_the_end_says_by_how_much() -> None:
    parts = words(Part("log", b"x" * (LIMIT - 1)), Part("log", b"yz"), Part("log", b"more"))
    assert parts == (Part("log", b"x" * (LIMIT - 1) + b"y"), Part("log", b"", 5))


def test_a_cut_begins_a_part_of_its_own() -> None:
    assert words(Part("stdout", b"a"), Part("stdout", b"b", 7)) == (
        Part("stdout", b"a"),
        Part("stdout", b"b", 7),
    )


# ---------------------------------------------------------------- telling


async def test_a_handler_tells_how_far_it_is_and_what_it_does(kitchen: Kitchen) -> None:
    async def grade() -> None:
        job = current_job()
        job.say("reading\n")
        job.progress(0.4, "compiling")
        job.say("done\n")

    kitchen.handlers.register("grade", grade)
    await kitchen.set()
    async with kitchen.worker():
        await kitchen.call("grade")
        ended = await kitchen.until(Phase.ENDED)
    assert decode_json(ended.progress) == {"fraction": 0.4, "message": "compiling"}
    chunks = await said(kitchen)
    assert b"".join(chunk.data for chunk in chunks if chunk.stream == "log") == b"reading\ndone\n"
    assert [chunk.number for chunk in chunks] == list(range(1, len(chunks) + 1))


async def test_a_handler_in_a_thread_speaks_too(kitchen: Kitchen) -> None:
    def grade() -> None:
        for step in range(10):
            current_job().say(f"{step}\n")
        current_job().progress(1)

    kitchen.handlers.register("grade", grade)
    await kitchen.set()
    async with kitchen.worker():
        await kitchen.call("grade")
        await kitchen.until(Phase.ENDED)
    log = [chunk.data for chunk in await said(kitchen) if chunk.stream == "log"]
    assert b"".join(log) == b"".join(b"%d\n" % step for step in range(10))


async def test_a_stage_speaks_and_the_next_one_speaks_after_it(kitchen: Kitchen) -> None:
    async def step(job: StageJob) -> None:
        job.say(f"{job.stage};")
        job.progress(0.5)

    kitchen.handlers.register_stage("first", step)
    kitchen.handlers.register_stage("second", step)
    await kitchen.set(stages=("first", "second"))
    async with kitchen.worker():
        await kitchen.stage()
        await kitchen.until(Phase.ENDED)
    log = [chunk.data for chunk in await said(kitchen) if chunk.stream == "log"]
    assert b"".join(log) == b"first;second;"


async def test_a_fraction_is_from_nothing_to_all(kitchen: Kitchen) -> None:
    async def grade() -> None:
        current_job().progress(1.5)

    kitchen.handlers.register("grade", grade)
    await kitchen.set()
    async with kitchen.worker():
        await kitchen.call("grade")
        ended = await kitchen.until(Phase.ENDED)
    assert (ended.code, ended.message) == (
        "error",
        "ValueError: progress is a fraction from 0 to 1, and not 1.5",
    )


async def test_one_who_never_stops_talking_costs_few_calls(kitchen: Kitchen) -> None:
    calls = Calls(kitchen.store)
    lines = 20_000
    assert lines * 6 < Settings().output_limit

    async def chat() -> None:
        for line in range(lines):
            current_job().say(f"{line}\n")
            if line % 100 == 0:
                await asyncio.sleep(0)

    kitchen.handlers.register("chat", chat)
    await kitchen.set()
    kitchen.store = calls
    async with kitchen.worker():
        await kitchen.call("chat")
        await kitchen.until(Phase.ENDED)
    log = b"".join(chunk.data for chunk in await said(kitchen) if chunk.stream == "log")
    assert log == b"".join(b"%d\n" % line for line in range(lines))
    assert len(calls.sayings) < lines / 100


async def test_what_may_have_been_heard_is_told_again_and_kept_once(kitchen: Kitchen) -> None:
    calls = Calls(kitchen.store)
    calls.lose_answers = 3

    async def grade() -> None:
        for word in ("one ", "two ", "three "):
            current_job().say(word)
            await calls.heard(word.encode())

    kitchen.handlers.register("grade", grade)
    await kitchen.set()
    kitchen.store = calls
    async with kitchen.worker():
        await kitchen.call("grade")
        await kitchen.until(Phase.ENDED)
    assert calls.lose_answers == 0
    log = b"".join(chunk.data for chunk in await said(kitchen) if chunk.stream == "log")
    assert log == b"one two three "


async def test_a_run_whose_lease_is_lost_is_ended_by_what_it_says(kitchen: Kitchen) -> None:
    stopped = asyncio.Event()

    async def grade() -> None:
        try:
            while True:
                current_job().say("still here\n")
                await asyncio.sleep(0.01)
        finally:
            stopped.set()

    kitchen.handlers.register("grade", grade)
    await kitchen.set()
    deaf = Deaf(kitchen.store)
    async with at_work(Worker(deaf, kitchen.handlers, 1)):
        await kitchen.call("grade")
        await kitchen.until(Phase.RUNNING)
        await kitchen.store.cancel("job", "enough")
        await asyncio.wait_for(stopped.wait(), 20)


class Passing(PassingOn):
    """A store that passes all on to another one."""

    def __init__(self, store: Store) -> None:
        self.queue, self._store = store.queue, store

    async def _target(self) -> Store:
        return self._store


class Calls(Passing):
    """Counts what is said, and loses some answers."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.sayings: list[Sequence[Saying]] = []
        self.lose_answers = 0
        self._news = asyncio.Condition()

    async def say(self, worker: str, sayings: Sequence[Saying]) -> list[Lease]:
        """Pass it on; some answers are lost on the way back."""
        lost = await super().say(worker, sayings)
        async with self._news:
            self.sayings.append(sayings)
            self._news.notify_all()
        if self.lose_answers:
            self.lose_answers -= 1
            raise StoreUnavailable
        return lost

    async def heard(self, word: bytes) -> None:
        """Wait until the store has heard a word."""

        def known() -> bool:
            told = [part.data for sayings in self.sayings for each in sayings for part in each.parts]
            return any(word in data for data in told)

        async with self._news:
            await self._news.wait_for(known)


class Deaf(Passing):
    """Gives no message that something is to stop."""

    async def park(self, worker: str, timeout: float) -> list[Any]:
        """Pass on nothing but starts."""
        return [m for m in await super().park(worker, timeout) if type(m).__name__ == "Start"]


# ---------------------------------------------------------------- a small limit


async def test_of_a_program_that_prints_little_less_than_is_kept_nothing_is_cut(kitchen: Kitchen) -> None:
    await kitchen.set(output_limit=1 << 16)
    await kitchen.command("sh", "-c", "yes | head -c 50000")
    async with kitchen.worker():
        await kitchen.ended()
    assert b"".join(chunk.data for chunk in await said(kitchen)) == b"y\n" * 25_000


async def test_of_a_program_that_prints_more_than_is_kept_the_beginning_and_the_end_are(
    kitchen: Kitchen,
) -> None:
    await kitchen.set(output_limit=1 << 16)
    await kitchen.command("sh", "-c", "echo begin; yes | head -c 300000; echo end")
    async with kitchen.worker():
        await kitchen.ended()
    chunks = await said(kitchen)
    assert chunks[0].data.startswith(b"begin\n")
    assert chunks[-1].data.endswith(b"y\nend\n")
    assert sum(chunk.cut + len(chunk.data) for chunk in chunks) == len("begin\n") + 300_000 + len("end\n")


async def test_of_one_long_word_of_a_handler_most_is_kept(kitchen: Kitchen) -> None:
    def shout() -> None:
        current_job().say("a" * 100_000)

    kitchen.handlers.register("shout", shout)
    await kitchen.set(output_limit=1 << 16)
    await kitchen.call("shout")
    async with kitchen.worker():
        await kitchen.ended()
    chunks = await said(kitchen)
    assert sum(len(chunk.data) for chunk in chunks) > 1 << 15
    assert chunks[-1].cut == 100_000 - (1 << 16)


async def test_how_much_a_handler_may_say_is_what_the_settings_say_now(kitchen: Kitchen) -> None:
    def shout() -> None:
        current_job().say("a" * 5000)

    kitchen.handlers.register("shout", shout)
    async with kitchen.worker() as worker:
        await kitchen.call("shout", id="before")
        await kitchen.ended("before")
        await kitchen.set(output_limit=2000)
        with capture_logs() as logs:

            async def learnt() -> bool:
                return any(each["event"] == "the queue's settings changed" for each in logs)

            worker.look_again()
            await eventually(learnt)
        await kitchen.call("shout")
        await kitchen.ended()
    assert (await said(kitchen))[-1].cut == 3000


async def test_half_a_character_at_the_end_is_told_also_if_all_before_it_was_heard(kitchen: Kitchen) -> None:
    await kitchen.command("sh", "-c", "printf 'a\\303'; sleep 1")
    async with kitchen.worker():
        await kitchen.ended()
    assert b"".join(chunk.data for chunk in await said(kitchen)) == b"a\xc3"
