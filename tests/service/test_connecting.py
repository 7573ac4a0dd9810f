"""How a queue finds its store: a url, the settings, or the note of `maitred up`."""

import os
from pathlib import Path

import pytest

import maitred
from maitred.core.settings import Settings
from maitred.store.connect import connect
from maitred.store.valkey.embedded import Embedded
from tests.conftest import Servers


@pytest.fixture
def url(servers: Servers) -> str:
    return servers.url("valkey")


@pytest.fixture
async def name(url: str, queue_name: str) -> str:
    stores = connect(url)
    await stores.queue(queue_name).configure(Settings())
    await stores.close()
    return queue_name


async def test_a_url_is_connected_to_at_the_first_call(url: str, name: str) -> None:
    async with maitred.Queue(name, url) as queue:
        assert (await queue.put("a", submitter="user:7", handler="grade")).outcome == "created"
        await queue.close()
        assert (await queue.line()).total == 1


async def test_the_environment_names_the_store(url: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAITRED_STORE__URL", url)
    async with maitred.Queue(name) as queue:
        assert (await queue.line()).total == 0


def test_the_sync_face_connects_on_its_own_loop(url: str, name: str) -> None:
    queue = maitred.Queue(name, url).sync
    try:
        job = queue.put("a", submitter="user:7", handler="grade")
        assert queue.line().items[0].id == job.id
        assert isinstance(queue.put_many([{}])[0], maitred.InvalidJob)
    finally:
        queue.close()


async def test_the_note_of_a_running_embedded_store_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with maitred.Queue("default") as queue:
        with pytest.raises(maitred.StoreUnavailable, match="maitred up"):
            await queue.line()
        with Embedded(tmp_path / ".maitred") as embedded:
            stores = connect(embedded.url)
            await stores.queue("default").configure(Settings())
            await stores.close()
            assert (await queue.line()).total == 0
            await queue.close()


async def test_a_url_that_is_none_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(maitred.ConfigError):
        await maitred.Queue("default", "http://example.org").line()


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_connects_for_itself(url: str, name: str) -> None:
    queue = maitred.Queue(name, url).sync
    queue.put("parent", submitter="user:7", handler="grade")
    child = os.fork()
    if child == 0:
        try:
            queue.put("child", submitter="user:8", handler="grade")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    try:
        assert {job.key for job in queue.line().items} == {"parent", "child"}
    finally:
        queue.close()
