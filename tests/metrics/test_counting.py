"""What happens to real jobs is counted once by a server that listens, whichever store it is on."""

import asyncio

import httpx
import pytest

import maitred
from maitred.core.classes import DurationClass, Limit
from maitred.core.events import Entry
from maitred.core.job import Finish, Order, Submitter
from maitred.core.settings import SECOND, Settings
from maitred.errors import SessionDenied, StoreUnavailable
from maitred.http import create_app
from maitred.service.desk import Desk
from maitred.service.metrics import Metrics
from maitred.store.memory import MemoryStores
from maitred.wire.session import parse_first
from tests.http.guest import HOST
from tests.metrics.conftest import Counted
from tests.metrics.readings import Readings, samples
from tests.service.address import Reply, listening
from tests.waiting import eventually

NEED = "handler:grade"
CLASSES = (
    DurationClass("fast", SECOND // 5),
    DurationClass("slow", 30 * SECOND, Limit(2)),
)


async def test_jobs_that_ran_are_counted_by_class_and_code(counted: Counted) -> None:
    async def grade(assignment: int) -> int:
        if assignment == 0:
            raise ValueError("nothing to grade")
        return assignment

    counted.handlers.register("grade", grade)
    reads = counted.reads
    async with counted.worker():
        for number in range(3):
            run = {"handler": "grade", "args": {"assignment": number}}
            await counted.guest.submits(f"k{number}", run=run)
        await reads.until("jobs_ended_total", 2, code="completed", class_="default")
        await reads.until("jobs_ended_total", 1, code="error", class_="default")
        assert await reads.value("jobs_ended_total") == 3
        assert await reads.value("runs_started_total", class_="default") == 3
        assert await reads.value("run_seconds_count", class_="default") == 3
        assert await reads.value("wait_seconds_count", class_="default") == 3
        assert await reads.value("worker_runs_total", code="completed") == 2
        assert await reads.value("worker_runs_total", code="error") == 1
        assert await reads.value("worker_run_seconds_count") == 3
        assert await reads.value("worker_slots") == 2
    assert await reads.value("events_missed_total") == 0
    assert await reads.value("events_read_total") > 0


async def test_the_floor_is_shown_as_it_is(counted: Counted) -> None:
    reads, store = counted.reads, counted.store
    await store.configure(Settings(classes=CLASSES, lease=600 * SECOND))
    await store.join("w", 1, [NEED])
    await counted.guest.submits("runs", **{"class": "slow"})
    await counted.guest.submits("waits")
    await counted.guest.submits("waits too", **{"class": "slow"})
    await counted.desk.pause(store.queue, by="me")
    await store.hold("submitter", "user.9", "me", "")
    await reads.until("paused", 1)
    assert await reads.value("waiting") == 2
    await reads.until("waiting_by_class", 1, class_="slow")
    assert await reads.value("waiting_by_class", class_="fast") == 1
    assert await reads.value("running", class_="slow") == 1
    assert await reads.value("running", class_="fast") == 0
    assert await reads.value("class_limit", class_="slow") == 1
    assert await reads.value("slots") == 1
    assert await reads.value("free_slots") == 0
    assert await reads.value("workers", state="taking") == 1
    assert await reads.value("jobs", state="pending") == 2
    assert await reads.value("holds", kind="submitter") == 1
    assert await reads.value("store_up") == 1


async def test_lost_leases_hand_backs_and_retries_are_told_apart(counted: Counted) -> None:
    store, reads = counted.store, counted.reads
    await store.configure(Settings(attempts=5, lease=SECOND, backoff=10_000, most_backoff=10_000))
    await store.put([Order("a", Submitter("user", "1"), NEED, b'{"key":"a","run":{}}')])
    [start] = (await store.join("w", 1, [NEED])).starts
    [start] = (await store.hand_back("w", [start.lease])).starts
    await store.finish("w", [Finish(start.lease, "error", "", transient=True)])
    await reads.until("retries_total", 1)
    # Nobody renews any more: the server's ticker finds that the worker is gone.
    await reads.until("lost_leases_total", 1)
    assert await reads.value("hand_backs_total") == 1
    assert await reads.value("retries_total") == 1
    assert await reads.value("jobs_ended_total") == 0


async def test_a_job_that_is_cut_for_another_is_counted_as_cut(counted: Counted) -> None:
    async def stay(seconds: float) -> None:
        await asyncio.sleep(seconds)

    counted.handlers.register("stay", stay)
    await counted.store.configure(Settings(classes=CLASSES, kill_after=SECOND // 10))
    async with counted.worker(1):
        await counted.guest.submits("elastic", run={"handler": "stay", "args": {"seconds": 60}})
        await counted.reads.until("running", 1, class_="fast")
        await counted.guest.submits(
            "next", run={"handler": "stay", "args": {"seconds": 0}}, **{"class": "slow"}
        )
        await counted.reads.until("jobs_ended_total", 1, code="cut", class_="fast")
        await counted.reads.until("jobs_ended_total", 1, code="completed", class_="slow")


async def test_what_was_quoted_is_held_against_the_start(counted: Counted) -> None:
    store, reads = counted.store, counted.reads
    await store.configure(Settings(time_limit=SECOND, lease=600 * SECOND))
    [] = (await store.join("w", 1, [NEED])).starts
    await counted.guest.submits("first")
    second = await counted.guest.submits("second")

    async def is_quoted() -> bool:
        estimate = (await counted.guest.asks("GET", second["id"])).json()["estimate"]
        return bool(estimate and estimate["high"])

    await eventually(is_quoted)
    starts = (await store.take("w")).starts or await store.park("w", 5)
    shift = await store.finish("w", [Finish(start.lease) for start in starts])  # type: ignore[union-attr]
    assert len(shift.starts) == 1
    await reads.until("estimates_total", 1)
    assert await reads.value("estimate_error_seconds_count") == 1


async def test_sessions_that_are_denied_are_counted_with_the_reason(counted: Counted) -> None:
    frame = parse_first('{"submitter": {"type": "user", "id": "1"}, "command": ["sh"]}')
    with pytest.raises(SessionDenied) as denied:
        await counted.desk.sessions.open(counted.store.queue, frame)  # type: ignore[arg-type]
    assert denied.value.why == "no-worker"
    await counted.reads.until("sessions_denied_total", 1, reason="no-worker")


async def test_tries_at_callbacks_are_counted_by_their_answer(counted: Counted) -> None:
    counted.handlers.register("grade", lambda assignment: assignment)
    await counted.store.configure(Settings(private_addresses=True, backoff=10_000, most_backoff=10_000))
    async with listening() as address, counted.worker():
        await counted.guest.submits("k", response_url=address.at("/told", Reply()))
        await counted.reads.until("callback_tries_total", 1, kind="job.ended", answer="sent")
        assert await counted.reads.value("callback_tries_total", kind="job.started", answer="sent") == 1
        assert await counted.reads.value("callback_seconds_count") == 2


async def test_requests_are_counted_by_their_route_and_never_by_what_is_asked(counted: Counted) -> None:
    reads = counted.reads
    await counted.guest.submits("k")
    assert (await counted.guest.asks("GET", "no/such job")).status_code == 404
    assert (await reads.http.get("/made/up")).status_code == 404
    assert (await reads.http.get("/healthz", headers={"host": "example.org"})).status_code == 403
    put = {"method": "PUT", "route": "/api/v1/queues/{queue}/jobs"}
    assert await reads.value("http_requests_total", **put, status="201") == 1
    assert await reads.value("http_request_seconds_count", **put) == 1
    missing = {"route": "/api/v1/queues/{queue}/jobs/{id}", "status": "404"}
    assert await reads.value("http_requests_total", **missing) == 1
    assert await reads.value("http_requests_total", route="unmatched", status="404") == 1
    assert await reads.value("http_requests_total", route="unmatched", status="403") == 1


async def test_calls_of_the_store_are_measured_by_verb(counted: Counted, kind: str) -> None:
    await counted.guest.submits("k")
    if kind == "memory":
        assert await counted.reads.value("store_call_seconds_count") == 0
        return
    assert await counted.reads.value("store_call_seconds_count", verb="put") == 1
    assert await counted.reads.value("store_scripts_total") > 0
    assert await counted.reads.value("store_script_seconds_total") > 0


async def test_two_servers_count_the_same(counted: Counted) -> None:
    other = Counted(counted.stores, counted.store)
    counted.handlers.register("grade", lambda assignment: assignment)
    async with other.served(), counted.worker():
        for number in range(5):
            await counted.guest.submits(f"k{number}")
        for reads in (counted.reads, other.reads):
            await reads.until("jobs_ended_total", 5, code="completed")
            assert await reads.value("runs_started_total") == 5


async def test_entries_that_were_not_heard_are_counted_as_missed() -> None:
    stores = MemoryStores()
    store = stores.queue("q")
    await store.configure(Settings())
    survey = await store.survey(60)
    metrics = Metrics()
    tally = metrics.tallies.of("q")
    tally.look(survey)
    tally.count(Entry("1-1", survey.last_number + 1, survey.now, []), survey.settings)
    await store.put([Order(f"j{number}", Submitter("user", "1"), NEED, b"{}") for number in range(2)])
    await store.put([Order("more", Submitter("user", "1"), NEED, b"{}")])
    later = await store.survey(60)
    tally.look(later)
    found = {sample.name: sample.value for sample in samples(metrics.exposition().decode())}
    assert found["maitred_events_read_total"] == 1
    assert found["maitred_events_missed_total"] == later.last_number - survey.last_number - 1 > 0


async def test_a_code_of_a_program_does_not_become_a_label(counted: Counted) -> None:
    store = counted.store
    await store.put([Order("a", Submitter("user", "1"), NEED, b'{"key":"a","run":{}}')])
    [start] = (await store.join("w", 1, [NEED])).starts
    await store.finish("w", [Finish(start.lease, "made-up", "")])
    await counted.reads.until("jobs_ended_total", 1, code="other")


async def test_a_transient_failure_is_a_run_that_failed_in_the_worker(counted: Counted) -> None:
    tries = iter(range(2))

    async def flaky() -> None:
        if next(tries) == 0:
            raise maitred.Transient("not now")

    counted.handlers.register("flaky", flaky)
    await counted.store.configure(Settings(backoff=10_000, most_backoff=10_000))
    async with counted.worker():
        await counted.guest.submits("k", run={"handler": "flaky", "args": {}})
        await counted.reads.until("jobs_ended_total", 1, code="completed")
        assert await counted.reads.value("retries_total") == 1
        assert await counted.reads.value("worker_runs_total", code="error") == 1
        assert await counted.reads.value("runs_started_total") == 2


async def test_watchers_are_shown_while_they_watch(counted: Counted) -> None:
    job = await counted.guest.submits("k")
    url = f"{counted.guest.url}/jobs/{job['id']}/events"
    async with counted.reads.http.stream("GET", url) as stream:
        assert stream.status_code == 200
        await counted.reads.until("watchers", 1, kind="job")
    await counted.reads.until("watchers", 0, kind="job")


async def test_a_scrape_asks_the_store_once_a_second_at_most(counted: Counted, kind: str) -> None:
    if kind == "memory":
        return
    await counted.reads.text()

    async def asked() -> float:
        return await counted.reads.value("store_call_seconds_count", verb="status")

    async def later(reads: Readings) -> bool:
        before = await reads.value("store_call_seconds_count", verb="status")
        return before == await reads.value("store_call_seconds_count", verb="status")

    # Two scrapes in a row may lie on both sides of a second, but not time after time.
    assert await eventually(lambda: later(counted.reads))
    assert await asked() > 0


class AwayStores(MemoryStores):
    """A store that is out of reach."""

    async def names(self) -> list[str]:
        raise StoreUnavailable


async def test_a_server_whose_store_is_away_says_so_and_answers_all_the_same() -> None:
    app = create_app(Desk(AwayStores()), hosts=[HOST])
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url=f"http://{HOST}") as http:
        reads = Readings(http, "q")
        assert (await http.get("/healthz")).status_code == 200
        assert "maitred_store_up 0.0" in await reads.text()
        assert await reads.value("http_requests_total", route="/healthz", status="200") == 1
