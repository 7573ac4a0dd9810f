"""The commands that keep the house open, as real processes."""

import asyncio
import contextlib
import os
import signal
import time

import httpx
import pytest

import maitred
from maitred.client import Client
from maitred.store.valkey.embedded import note
from maitred.wire import JobDocument
from tests.cli.house import House


async def ended(client: Client, job: JobDocument) -> JobDocument:
    """Wait until a job has ended."""
    async with asyncio.timeout(30):
        while job.phase is not None:
            job = await client.job("default", job.id)
    return job


def sent(key: str, **run: object) -> dict[str, object]:
    return {"key": key, "submitter": {"type": "user", "id": "7"}, "run": run}


async def test_up_runs_commands_and_handlers_and_stops_in_order(house: House) -> None:
    up, address = house.comes_up("up", "--port", "0", "--slots", "2", "--app", "app")
    assert (house.home / ".maitred" / "address").read_text().strip() == address
    async with Client(address) as client:
        program = await ended(client, await client.put("default", sent("a", command=["echo", "hello"])))
        assert program.state == "completed"
        handled = await ended(
            client, await client.put("default", sent("b", handler="double", args={"n": 21}))
        )
        assert (handled.state, handled.result) == ("completed", {"twice": 42})
    assert "Traceback" not in house.stops(up, signal.SIGINT)
    assert not (house.home / ".maitred" / "address").exists()


async def test_jobs_are_there_again_after_a_new_start(house: House) -> None:
    up, address = house.comes_up("up", "--port", "0", "--slots", "0")
    async with Client(address) as client:
        job = await client.put("default", sent("a", command=["true"]))
    house.stops(up)
    up, address = house.comes_up("up", "--port", "0", "--slots", "1")
    async with Client(address) as client:
        assert (await ended(client, job)).state == "completed"
    house.stops(up)


async def test_server_and_worker_run_apart(house: House) -> None:
    up, _ = house.comes_up("up", "--port", "0", "--slots", "0")
    server, second = house.comes_up("serve", "--port", "0")
    worker = house.starts("work", "--app", "app", "--slots", "1")
    async with Client(second) as client:
        job = await ended(client, await client.put("default", sent("a", handler="double", args={"n": 1})))
        assert job.result == {"twice": 2}
    for process in (worker, server, up):
        house.stops(process)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("up", "--port", "0", "--host", "0.0.0.0"), "maitred keys create --role admin"),
        (("up", "--app", "no.such.module"), "cannot be imported"),
        (("up", "--app", "json"), "has no maitred.Queue"),
        (("up", "--config", "nowhere.toml"), "there is no such file"),
        (("serve", "--port", "0", "--store", "http://example.org"), "http:// is not a known scheme"),
    ],
)
def test_a_wrong_start_is_one_sentence(house: House, words: tuple[str, ...], sentence: str) -> None:
    process = house.starts(*words)
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said.count("\n")) == (2, 1)
    assert sentence in said


def test_no_store_and_a_second_owner_are_failures_in_one_sentence(house: House) -> None:
    alone = house.starts("work")
    _, said = alone.communicate(timeout=60)
    assert (alone.returncode, "start one with `maitred up`" in said) == (1, True)
    up, _ = house.comes_up("up", "--port", "0", "--slots", "0")
    again = house.starts("up", "--port", "0")
    _, said = again.communicate(timeout=60)
    assert (again.returncode, "is in use by process" in said, said.count("\n")) == (1, True, 1)
    house.stops(up)


async def test_a_killed_embedded_server_comes_back_and_the_house_goes_on(house: House) -> None:
    up, address = house.comes_up("up", "--port", "0", "--slots", "1")
    async with Client(address) as client:
        before = await ended(client, await client.put("default", sent("a", command=["true"])))
        kill_server(house)
        async with asyncio.timeout(30):
            while True:
                with contextlib.suppress(maitred.StoreError):
                    after = await client.put("default", sent("b", command=["true"]))
                    break
        assert (await ended(client, after)).state == "completed"
        assert (await client.job("default", before.id)).state == "completed"
    said = house.stops(up)
    assert "the embedded server has ended and is started again" in said
    assert "Traceback" not in said


def test_a_signal_is_heard_while_the_embedded_server_is_away(house: House) -> None:
    up, address = house.comes_up("up", "--port", "0", "--slots", "1")
    while not httpx.get(f"{address}/readyz").is_success:
        pass
    kill_server(house)
    asked = time.monotonic()
    house.stops(up)
    assert time.monotonic() - asked < 10


def test_another_loopback_address_is_the_servers_own(house: House) -> None:
    up = house.starts("up", "--host", "127.0.0.2", "--port", "0", "--slots", "0")
    assert up.stdout
    assert "http://127.0.0.2:" in up.stdout.readline()
    asked = house.starts("line")
    shown, _ = asked.communicate(timeout=60)
    assert (asked.returncode, shown) == (0, "default is open: 0 waiting, 0 running, no slots.\n")
    house.stops(up)


async def test_what_a_failed_handler_was_sent_is_not_in_the_log(house: House) -> None:
    up, address = house.comes_up("up", "--port", "0", "--slots", "1", "--app", "app")
    async with Client(address) as client:
        wrong = await client.put("default", sent("a", handler="double", args={"n": None, "x": "secret-42"}))
        assert (await ended(client, wrong)).code == "error"
        wrong = await client.put("default", sent("b", handler="double", args={"n": {"is": "secret-42"}}))
        assert (await ended(client, wrong)).code == "error"
    said = house.stops(up)
    assert "Traceback" in said
    assert "secret-42" not in said


async def test_an_order_that_cannot_change_is_named_with_the_reason(house: House) -> None:
    up, address = house.comes_up("up", "--port", "0", "--slots", "0")
    async with Client(address) as client:
        await client.put("default", sent("a", command=["true"]))
    house.stops(up)
    again = house.starts("up", "--port", "0", MAITRED_QUEUES__DEFAULT__ORDER="oldest-first")
    _, said = again.communicate(timeout=60)
    assert (again.returncode, said) == (
        5,
        "maitred: queues.default.order: cannot change from newest-first to oldest-first while 1 job waits.\n",
    )


def kill_server(house: House) -> None:
    noted = note(house.home / ".maitred")
    assert noted
    os.kill(noted["server_pid"], signal.SIGKILL)
