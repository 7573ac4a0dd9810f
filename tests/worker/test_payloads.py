"""A stage that gets its payload: what is not as the manifest told fails the job, and says why."""

from collections.abc import AsyncIterator
from hashlib import sha256
from typing import Any

import pytest

import maitred
from maitred.core.job import Job
from maitred.store.port import Store
from tests.service.address import Address, Reply, listening
from tests.worker.test_stages import Pipeline

CONTENT = b"forty-two"
TOLD = {"digest_algorithm": "sha-256", "digest": sha256(CONTENT).hexdigest(), "size": str(len(CONTENT))}


@pytest.fixture
async def address() -> AsyncIterator[Address]:
    async with listening() as address:
        yield address


async def fetched(store: Store, url: str, **told: Any) -> Job:
    """Let a worker fetch what a manifest told of; give the job as it ended."""
    pipeline = Pipeline(store)
    await pipeline.begin("downloading", backoff=10_000, attempts=2)

    async def download(job: maitred.StageJob) -> int:
        return len(await maitred.fetch(**job.args))

    pipeline.handlers.register_stage("downloading", download)
    async with pipeline.worker(slots=1):
        await pipeline.ingest(url=url, **told)
        return await pipeline.ended()


async def test_a_payload_that_is_as_it_was_told_completes(store: Store, address: Address) -> None:
    job = await fetched(store, address.at("/file", Reply(body=CONTENT)), **TOLD)
    assert (job.code, job.result) == ("", b"9")


@pytest.mark.parametrize(
    ("told", "says"),
    [
        ({"digest": "0" * 64}, "DigestMismatch: the sha256 digest is"),
        ({"size": "8"}, "SizeMismatch: it has 9 bytes, not 8 as was told"),
        ({"digest_algorithm": "sha-255"}, "'sha-255' is not one of md5"),
    ],
)
async def test_a_payload_that_is_not_as_it_was_told_fails_its_job(
    store: Store, address: Address, told: dict[str, str], says: str
) -> None:
    job = await fetched(store, address.at("/file", Reply(body=CONTENT)), **{**TOLD, **told})
    assert job.code == "error"
    assert says in job.message
    assert len(job.timeline) == 1


async def test_an_address_that_cannot_answer_just_now_is_asked_again(store: Store, address: Address) -> None:
    job = await fetched(store, address.at("/file", Reply(status=503), Reply(body=CONTENT)), **TOLD)
    assert (job.code, job.attempt) == ("", 2)


async def test_an_address_that_never_answers_fails_its_job_in_the_end(store: Store, address: Address) -> None:
    job = await fetched(store, address.at("/file", Reply(status=503)))
    assert (job.code, job.attempt) == ("error", 2)
    assert "answered 503" in job.message


async def test_what_is_not_there_is_not_asked_for_again(store: Store, address: Address) -> None:
    job = await fetched(store, address.at("/file", Reply(status=404)))
    assert (job.code, job.attempt) == ("error", 1)
    assert "answered 404" in job.message
