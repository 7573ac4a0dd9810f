"""Signals to real workers and servers: the second is quicker, more do no harm, and SIGHUP reloads."""

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

import maitred
from maitred.core.job import Phase
from maitred.core.settings import SECOND
from tests.faults.scene import QUEUE, Command, Scene
from tests.faults.test_lost_stores import address_of
from tests.waiting import eventually

# A program that notes SIGTERM and goes on, with a child that does the same.
DEAF = """
trap 'echo "term {key} 1 $$ $(date +%s%N | sed "s/...$//")" >> {log}' TERM
(trap '' TERM; while :; do sleep 1000; done) &
echo $! >> {log}.children
echo "begin {key} 1 $$ $(date +%s%N | sed 's/...$//')" >> {log}
while :; do sleep 0.02; done
"""


@pytest.fixture
def patient(scene: Scene) -> Scene:
    """A scene whose grace and leases are longer than any test."""
    rewrite(scene, '[queues.default]\nlease = "1m"\ngrace = "10m"\nkill_after = "100ms"\n')
    return scene


async def configured(scene: Scene) -> None:
    await scene.store.configure(scene.settings)


async def told(command: Command, words: str, count: int = 1) -> str:
    """Wait until the log has these words so many times; give it."""

    async def look() -> str:
        return command.errors if command.errors.count(words) >= count else ""

    return await eventually(look)


async def draining(scene: Scene) -> None:
    async def look() -> bool:
        return any(worker.draining for worker in (await scene.store.status()).workers)

    await eventually(look)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_second_signal_ends_running_work_and_gives_it_back(patient: Scene, number: int) -> None:
    await configured(patient)
    worker = patient.worker(slots=3)
    deaf = patient.program("deaf", DEAF.format(key="deaf", log=patient.log))
    await patient.put(patient.call("wait", "async", gate=str(patient.gate)))
    await patient.put(patient.call("block", "sync", gate=str(patient.gate)), deaf)
    await patient.begun(3)
    worker.signal(signal.Signals(number))
    await draining(patient)
    assert worker.process.poll() is None, "it waits for its work"
    assert not patient.lines("cancelled", "term")
    worker.signal(signal.Signals(number))
    assert await worker.ends() == 0
    assert {line.key for line in patient.lines("cancelled", "term")} == {"async", "deaf"}
    for key in ("async", "sync", "deaf"):
        job = await patient.job(key)
        assert (job.phase, job.attempt) == (Phase.WAITING, 0)
        assert [run.code for run in job.timeline] == ["handed-back"]
    assert "Traceback" not in worker.errors
    await patient.is_clean()


async def test_more_signals_do_nothing_worse(patient: Scene) -> None:
    await configured(patient)
    worker = patient.worker(slots=1)
    await patient.put(patient.program("deaf", DEAF.format(key="deaf", log=patient.log)))
    await patient.begun(1)
    for _ in range(5):
        worker.signal(signal.SIGTERM)
        await draining(patient)
    assert await worker.ends() == 0
    job = await patient.job("deaf")
    assert (job.phase, job.attempt, [run.code for run in job.timeline]) == (Phase.WAITING, 0, ["handed-back"])
    assert "Traceback" not in worker.errors
    await patient.is_clean()


async def test_up_hears_the_second_signal_too(patient: Scene) -> None:
    up = patient.starts(
        "up", "--port", "0", "--slots", "1", "--app", "faults_app", "--config", "maitred.toml"
    )
    address = await address_of(up)
    async with maitred.client.Client(address) as client:
        job = await client.put(
            QUEUE,
            {
                "key": "long",
                "submitter": {"type": "user", "id": "7"},
                "run": {"handler": "wait", "args": {"gate": str(patient.gate)}},
            },
        )
        await patient.begun(1)
        up.signal(signal.SIGTERM)

        async def not_ready() -> bool:
            [worker] = (await client.workers(QUEUE)).items
            return worker.draining

        await eventually(not_ready)
        assert job.id
    up.signal(signal.SIGTERM)
    assert await up.ends() == 0
    assert patient.lines("cancelled")
    assert "Traceback" not in up.errors


# ---------------------------------------------------------------- reload


def rewrite(scene: Scene, text: str) -> None:
    (scene.home / "maitred.toml").write_text(text)


async def reloaded(command: Command, words: str, count: int = 1) -> str:
    command.signal(signal.SIGHUP)
    return await told(command, words, count)


async def test_a_server_writes_what_changed_and_says_what_cannot(scene: Scene) -> None:
    server = scene.starts("serve", "--store", scene.server.url, "--port", "0")
    await address_of(server)
    rewrite(scene, '[queues.default]\nlease = "1s"\ntime_limit = "7m"\n[queues.second]\nattempts = 9\n')
    said = await reloaded(server, "a queue was added")
    assert "time_limit" in said
    assert (await scene.store.settings()).time_limit == 7 * 60 * SECOND
    assert (await scene.stores.queue("second").settings()).attempts == 9

    before = await scene.store.settings()
    rewrite(scene, '[queues.default]\nlease = "soon"\n')
    said = await reloaded(server, "the old ones stay")
    assert "queues.default.lease" in said
    assert await scene.store.settings() == before

    await scene.put(scene.call("wait", "waits"))
    rewrite(scene, '[queues.default]\norder = "oldest-first"\n[queues.second]\nattempts = 8\n')
    said = await reloaded(server, "the old ones stay", 2)
    assert "queues.default.order: cannot change from newest-first to oldest-first while 1 job waits" in said
    assert await scene.store.settings() == before

    async def other_is_written() -> bool:
        return (await scene.stores.queue("second").settings()).attempts == 8

    await eventually(other_is_written)
    server.signal(signal.SIGTERM)
    assert await server.ends() == 0
    assert "Traceback" not in server.errors


async def test_up_hires_a_worker_for_a_new_queue_and_counts_by_the_new_rate(scene: Scene) -> None:
    up = scene.starts("up", "--port", "0", "--slots", "1")
    address = await address_of(up)
    rewrite(scene, '[queues.default]\n[queues.second]\nkill_after = "100ms"\n')
    await reloaded(up, "a worker was added")
    async with maitred.client.Client(address) as client:
        body = {"key": "a", "submitter": {"type": "user", "id": "7"}, "run": {"command": ["true"]}}
        job = await client.put("second", body)

        async def ended() -> bool:
            return (await client.job("second", job.id)).state == "completed"

        await eventually(ended)
        key = (await client.create_key("admin")).key
    rewrite(scene, '[server]\nrate = 1\nmax_header = "4KiB"\n[queues.default]\n')
    await reloaded(up, "of the server only the rate changes without a new start")
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx.AsyncClient(base_url=address, headers=headers) as http:

        async def too_often() -> bool:
            return (await http.get("/api/v1/queues")).status_code == 429

        await eventually(too_often)
    up.signal(signal.SIGTERM)
    assert await up.ends() == 0
    assert "Traceback" not in up.errors


async def test_a_worker_reads_the_queues_settings_again(scene: Scene) -> None:
    worker = scene.worker(slots=1)
    await scene.workers(1)
    rewrite(scene, '[queues.default]\nlease = "10m"\ngrace = "10m"\nkill_after = "1m"\n')
    await configured(scene)
    await reloaded(worker, "the queue's settings changed")
    assert "--app and --slots need a new start" in worker.errors
    rewrite(scene, '[queues.default]\nlease = "10m"\ngrace = "10m"\nkill_after = "100ms"\n')
    await configured(scene)
    await reloaded(worker, "the queue's settings changed", 2)
    deaf = scene.program("deaf", DEAF.format(key="deaf", log=scene.log))
    await scene.put(deaf)
    await scene.begun(1)
    await scene.store.cancel("deaf", "by hand")

    async def stopped() -> bool:
        return not any(worker.busy for worker in (await scene.store.status()).workers)

    await eventually(stopped, patience=30)
    worker.signal(signal.SIGTERM)
    assert await worker.ends() == 0


async def test_a_worker_of_all_queues_takes_up_new_ones(scene: Scene) -> None:
    worker = scene.starts("work", "--store", scene.server.url, "--slots", "1")
    await worker.says("Working with 1 slots")
    await scene.stores.queue("second").configure(scene.settings)
    await reloaded(worker, "a worker was added")

    async def joined() -> bool:
        return len((await scene.stores.queue("second").status()).workers) == 1

    await eventually(joined)
    worker.signal(signal.SIGTERM)
    assert await worker.ends() == 0
    assert not (await scene.stores.queue("second").status()).workers


TAKE_TERMINAL = """
import os, sys
os.close(os.open(sys.argv[1], os.O_RDWR))
os.execv(sys.executable, [sys.executable, "-m", "maitred", *sys.argv[2:]])
"""


def on_a_terminal(scene: Scene, terminal: str, *words: str) -> Command:
    """Start a command that a terminal controls."""
    said = scene.home / "said-terminal"
    with said.open("wb") as output, said.with_suffix(".err").open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-c", TAKE_TERMINAL, terminal, *words],
            cwd=scene.home,
            env={**os.environ, "PYTHONPATH": str(Path(maitred.__file__).parents[1])},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            start_new_session=True,
        )
    command = Command(process, said)
    scene.commands.append(command)
    return command


async def test_a_house_reloads_on_its_terminal_and_stops_when_that_is_gone(scene: Scene) -> None:
    ours, theirs = pty.openpty()
    up = on_a_terminal(scene, os.ttyname(theirs), "up", "--port", "0", "--slots", "1")
    await up.says("ready")
    await reloaded(up, "settings reloaded")
    os.close(theirs)
    os.close(ours)
    assert await up.ends() == 0
    assert "Traceback" not in up.errors


async def test_shortened_leases_are_not_lost(scene: Scene) -> None:
    rewrite(scene, '[queues.default]\nlease = "9s"\nattempts = 1\n')
    await configured(scene)
    worker = scene.worker(slots=1)
    await scene.put(scene.call("wait", "long", gate=str(scene.gate)))
    await scene.begun(1)
    await scene.confirmed(1)
    rewrite(scene, '[queues.default]\nlease = "2s"\nattempts = 1\n')
    await configured(scene)
    ends: set[int] = set()

    async def renewed_often() -> bool:
        [known] = (await scene.store.status()).workers
        ends.add(known.lease_end)
        return len(ends) > 8

    await eventually(renewed_often)
    scene.open_gate()
    [job] = await scene.ended("long")
    assert (job.code, job.attempt, [run.code for run in job.timeline]) == ("", 1, [""])
    assert "lost" not in worker.errors
    worker.signal(signal.SIGTERM)
    assert await worker.ends() == 0
