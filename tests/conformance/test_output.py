"""What runs say and leave behind is kept in order and bounded, and only the one who holds a run is heard."""

from dataclasses import replace
from typing import Any

import pytest

from maitred.core.events import Said
from maitred.core.job import Finish, Lease, Order, Start, Typed
from maitred.core.output import Artifact, ArtifactView, Chunk, Output, Part, Saying
from maitred.core.sayings import DROPPED_PER_SAYING, PIECE_COST
from maitred.core.settings import SECOND, Settings
from maitred.core.speaking import UNREAD_BEFORE_TYPED
from maitred.errors import LeaseLost, NotRunning, TooLarge
from maitred.store.port import Store
from tests.conformance.party import NEED, U1
from tests.conftest import Clock

RULES = Settings(lease=10**12, attempts=2, retention=100 * SECOND, artifact_limit=10)


@pytest.fixture
async def start(store: Store) -> Start:
    """A job that runs."""
    await store.configure(RULES)
    await store.put([Order("j", U1, NEED, b"")])
    [start] = (await store.join("w", 1, [NEED])).starts
    return start


async def say(store: Store, start: Start, *parts: Part, worker: str = "w") -> list[Lease]:
    output = await store.output(start.id, start.version, 0, 1)
    return await store.say(worker, [Saying(start.lease, parts, output.last if output else 0)])


async def heard(store: Store, after: int = 0, limit: int = 100, version: int | None = None) -> Output:
    output = await store.output("j", version, after, limit)
    assert output
    return output


def texts(output: Output) -> list[bytes]:
    return [chunk.data for chunk in output.chunks]


async def job(store: Store) -> Any:
    [view] = await store.read(["j"])
    assert view
    return view.job


async def finish(store: Store, start: Start, code: str = "", **more: Any) -> list[Start]:
    return (await store.finish("w", [Finish(start.lease, code, **more)])).starts


async def test_pieces_have_numbers_times_and_the_attempt(store: Store, clock: Clock, start: Start) -> None:
    assert await say(store, start, Part("stdout", b"one\n"), Part("stderr", b"\xff\x00", 3 << 33)) == []
    clock.now += SECOND
    assert await say(store, start, Part("log", "drei é".encode())) == []
    first = clock.now - SECOND
    assert await heard(store) == Output(
        start.lease.record,
        [
            Chunk(1, first, 1, "stdout", b"one\n"),
            Chunk(2, first, 1, "stderr", b"\xff\x00", 3 << 33),
            Chunk(3, clock.now, 1, "log", "drei é".encode()),
        ],
        first=1,
        last=3,
        ended=False,
    )


async def test_a_reader_goes_on_after_the_last_piece_that_it_had(store: Store, start: Start) -> None:
    await say(store, start, *(Part("stdout", b"%d" % number) for number in range(1, 8)))
    assert texts(await heard(store, 0, 3)) == [b"1", b"2", b"3"]
    assert texts(await heard(store, 3, 3)) == [b"4", b"5", b"6"]
    assert texts(await heard(store, 6, 3)) == [b"7"]
    assert texts(await heard(store, 7, 3)) == texts(await heard(store, 99, 3)) == []


async def test_a_job_that_said_nothing_has_an_empty_output_and_an_unknown_one_none(
    store: Store, start: Start
) -> None:
    assert await heard(store) == Output(start.lease.record, [], 1, 0, ended=False)
    assert await store.output("nobody", None, 0, 9) is None
    assert await store.output("j", 2, 0, 9) is None


async def test_the_oldest_pieces_go_when_there_is_too_much(store: Store, start: Start) -> None:
    await store.configure(replace(RULES, output_limit=3 * (PIECE_COST + 10)))
    for number in range(5):
        await say(store, start, Part("stdout", b"%d" % number * 10))
    output = await heard(store)
    assert texts(output) == [b"%d" % number * 10 for number in (2, 3, 4)]
    assert (output.first, output.last) == (3, 5)
    await say(store, start, Part("stdout", b"x" * (2 * PIECE_COST)))
    assert (await heard(store)).first == (await heard(store)).last == 6
    assert await store.check() == []


async def test_a_piece_that_is_more_than_all_that_is_kept_goes_itself(store: Store, start: Start) -> None:
    await store.configure(replace(RULES, output_limit=100))
    await say(store, start, Part("stdout", b"x"), Part("stdout", b"x" * 101))
    assert await heard(store) == Output(start.lease.record, [], 3, 2, ended=False)
    await say(store, start, Part("stdout", b"y"))
    assert texts(await heard(store)) == [b"y"]


async def test_many_small_pieces_go_step_by_step(store: Store, start: Start) -> None:
    count = 2 * DROPPED_PER_SAYING
    await say(store, start, *[Part("stdout", b"")] * count)
    await store.configure(replace(RULES, output_limit=PIECE_COST))
    await say(store, start, Part("stdout", b""))
    assert (await heard(store)).first == DROPPED_PER_SAYING + 2
    await say(store, start, Part("stdout", b""))
    assert (await heard(store)).first == count + 2
    assert await store.check() == []


async def test_what_is_said_twice_of_a_run_in_one_call_is_heard_in_order(store: Store, start: Start) -> None:
    sayings = [Saying(start.lease, (Part("stdout", text),)) for text in (b"1", b"2")]
    stranger = Saying(Lease(start.lease.record, b"n" * 16), (Part("stdout", b"no"),))
    assert await store.say("w", [sayings[0], stranger, sayings[1]]) == [stranger.lease]
    assert texts(await heard(store)) == [b"1", b"2"]


async def test_only_who_holds_the_run_is_heard(store: Store, start: Start) -> None:
    part, files = Part("stdout", b"no"), [Artifact("a", "", b"")]
    assert await say(store, start, part, worker="other") == [start.lease]
    await finish(store, start)
    assert await say(store, start, part) == [start.lease]
    with pytest.raises(LeaseLost):
        await store.keep("w", start.lease, files)
    with pytest.raises(LeaseLost):
        await store.keep("nobody", start.lease, files)
    assert texts(await heard(store)) == []


async def test_a_cancelled_run_adds_what_it_had_done_and_changes_nothing_else(
    store: Store, clock: Clock, start: Start
) -> None:
    await say(store, start, Part("stdout", b"1"))
    await store.cancel("j", "cancelled by u: no")
    before = await job(store)
    clock.now += SECOND
    assert await say(store, start, Part("stdout", b"2")) == []
    await store.keep("w", start.lease, [Artifact("a", "", b"kept")])
    assert not (await heard(store)).ended, "its run has not ended"
    await finish(store, start, "cancelled", message="stopped", result=b"{}", said=(Part("stdout", b"3"),))
    output = await heard(store)
    assert (texts(output), output.ended) == ([b"1", b"2", b"3"], True)
    assert await store.artifact("j", None, "a") == Artifact("a", "", b"kept")
    artifacts = (ArtifactView("a", "", 4),)
    assert await job(store) == replace(before, result=b"{}", artifacts=artifacts)
    assert await say(store, start, Part("stdout", b"4")) == [start.lease], "its run has ended"
    assert await store.check() == []


@pytest.mark.parametrize("then", ["retry", "retry and cancel", "delete"])
async def test_what_has_gone_on_hears_nothing_of_its_cancelled_run(
    store: Store, start: Start, then: str
) -> None:
    await store.cancel("j", "cancelled by u: no")
    await (store.remove("j") if then == "delete" else store.retry("j"))
    if then == "retry and cancel":
        await store.cancel("j", "cancelled by u: again")
    elif then == "delete":
        await store.put([Order("j", U1, NEED, b"")])
    with pytest.raises(LeaseLost):
        await store.keep("w", start.lease, [Artifact("a", "", b"")])
    assert await say(store, start, Part("stdout", b"no")) == [start.lease]
    await finish(store, start, "cancelled", result=b"{}", said=(Part("stdout", b"no"),))
    assert texts(await heard(store)) == []
    assert (await job(store)).result == b""


async def test_a_cancelled_version_has_its_own_result_beside_the_next(store: Store, start: Start) -> None:
    await store.cancel("j", "cancelled by u: no")
    await store.put([Order("j", U1, NEED, b"")])
    await finish(store, start, "cancelled", result=b"{}")
    first, second = [(await store.read(["j"], version))[0] for version in (1, 2)]
    assert first
    assert second
    assert (first.job.code, first.job.result, second.job.result) == ("cancelled", b"{}", b"")


async def test_last_words_are_kept_with_the_end(store: Store, start: Start) -> None:
    await say(store, start, Part("stdout", b"1"))
    await finish(store, start, said=(Part("stdout", b"2"), Part("stderr", b"3", 7)))
    output = await heard(store)
    assert texts(output) == [b"1", b"2", b"3"]
    assert output.ended
    assert (await job(store)).progress == b""


async def test_progress_is_the_last_that_was_said_and_begins_anew_with_each_run(
    store: Store, start: Start
) -> None:
    await say(store, start, Part("progress", b"{1}"), Part("stdout", b"x"), Part("progress", b"{2}"))
    assert (await job(store)).progress == b"{2}"
    await finish(store, start, "error", said=(Part("progress", b"{3}"),))
    assert (await job(store)).progress == b"{3}"
    await store.retry("j")
    [again] = [message for message in await store.park("w", 1) if isinstance(message, Start)]
    assert (await job(store)).progress == b""
    await say(store, again, Part("stdout", b"again"))
    assert [chunk.attempt for chunk in (await heard(store)).chunks] == [1, 1, 1, 1, 1]
    assert (await heard(store)).last == 5


async def test_each_version_has_its_own_output(store: Store, start: Start) -> None:
    await say(store, start, Part("stdout", b"old"))
    await store.put([Order("j", U1, NEED, b"2")])
    assert texts(await heard(store)) == []
    [second] = await finish(store, start)
    await say(store, second, Part("stdout", b"new"))
    assert texts(await heard(store)) == [b"new"]
    assert texts(await heard(store, version=1)) == [b"old"]


async def test_artifacts_are_kept_replaced_and_named_by_the_job(store: Store, start: Start) -> None:
    files = [Artifact("b/é.png", "image/png", b"\x00\xff"), Artifact("a", "text/plain", b"123")]
    await store.keep("w", start.lease, [Artifact("a", "", b"older"), *files])
    assert (await job(store)).artifacts == (
        ArtifactView("a", "text/plain", 3),
        ArtifactView("b/é.png", "image/png", 2),
    )
    assert await store.artifact("j", None, "b/é.png") == files[0]
    assert await store.artifact("j", 1, "a") == files[1]
    assert await store.artifact("j", 2, "a") is await store.artifact("j", None, "c") is None
    assert await store.artifact("nobody", None, "a") is None
    await store.keep("w", start.lease, files[:1])
    await finish(store, start)
    assert (await job(store)).artifacts == (ArtifactView("b/é.png", "image/png", 2),)
    assert await store.artifact("j", None, "a") is None
    assert await store.check() == []


async def test_more_artifacts_than_the_queue_keeps_are_refused_and_change_nothing(
    store: Store, start: Start
) -> None:
    await store.keep("w", start.lease, [Artifact("a", "", b"1234567890")])
    with pytest.raises(TooLarge) as refused:
        await store.keep("w", start.lease, [Artifact("a", "", b"12345"), Artifact("b", "", b"123456")])
    assert (refused.value.size, refused.value.limit) == (11, 10)
    assert (await job(store)).artifacts == (ArtifactView("a", "", 10),)
    await store.keep("w", start.lease, [])
    assert (await job(store)).artifacts == ()


@pytest.mark.parametrize("way", ["remove", "sweep", "remove-running"])
async def test_all_of_it_goes_with_the_record(store: Store, clock: Clock, start: Start, way: str) -> None:
    await say(store, start, Part("stdout", b"x"))
    await store.keep("w", start.lease, [Artifact("a", "", b"1")])
    if way != "remove-running":
        await finish(store, start)
    if way == "sweep":
        clock.now += 200 * SECOND
        assert await store.sweep(10) == 1
    else:
        await store.remove("j")
    snapshot = await store.snapshot()
    assert (snapshot.outputs, snapshot.files) == ({}, {})
    assert await store.output("j", None, 0, 9) is None
    assert await say(store, start, Part("stdout", b"late")) == [start.lease]
    assert (await store.snapshot()).outputs == {}


async def test_what_is_typed_reaches_the_worker_in_order(store: Store, start: Start) -> None:
    record = start.lease.record
    assert await store.type_in(record, b"ls\n", None)
    assert await store.type_in(record, b"", None)
    assert await store.type_in(record, b"", (80, 25))
    assert await store.type_in(record, b"\x03", (1, 1))
    messages = [message for message in await store.park("w", 1) if isinstance(message, Typed)]
    assert messages == [
        Typed(start.lease, b"ls\n"),
        Typed(start.lease, b"", (80, 25)),
        Typed(start.lease, b"\x03", (1, 1)),
    ]


async def test_a_worker_that_does_not_read_is_typed_no_more(store: Store, start: Start) -> None:
    record, sent = start.lease.record, 0
    while await store.type_in(record, b"x", None):
        sent += 1
        assert sent <= UNREAD_BEFORE_TYPED
    await store.park("w", 1)
    assert await store.type_in(record, b"x", None)


async def test_nobody_types_for_what_does_not_run(store: Store, start: Start) -> None:
    with pytest.raises(NotRunning):
        await store.type_in(start.lease.record + 1, b"x", None)
    await finish(store, start)
    with pytest.raises(NotRunning):
        await store.type_in(start.lease.record, b"x", None)


async def test_a_worker_says_what_it_is_about(store: Store) -> None:
    await store.join("w", 1, [NEED], b'{"sandbox": []}')
    [worker] = (await store.status()).workers
    assert worker.about == b'{"sandbox": []}'
    await store.join("w", 1, [NEED])
    [worker] = (await store.status()).workers
    assert worker.about == b""


async def test_listeners_hear_once_of_what_a_call_says_of_a_run(store: Store, start: Start) -> None:
    last_id = (await store.survey(600)).last_id
    await store.say("w", [Saying(start.lease, (Part("stdout", b"1"), Part("progress", b"2")))] * 2)
    await finish(store, start, said=(Part("stdout", b"3"),))
    entries = await store.news(last_id, 1)
    told = [event for entry in entries for event in entry.events if isinstance(event, Said)]
    assert told == [Said(start.lease.record, 1, 4), Said(start.lease.record, 5, 5)]
