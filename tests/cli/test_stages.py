"""A house whose queue has stages, as real processes."""

import pytest

from maitred.client import Client
from tests.cli.house import House
from tests.cli.test_keeping import ended, sent

APP = """
import maitred

q = maitred.Queue("default")

@q.stage("downloading")
def download(job: maitred.StageJob) -> dict:
    job.identifiers["primary_id"] = "ark:/" + job.key
    return {"size": job.args["size"]}

@q.stage("notify")
async def notify(job: maitred.StageJob) -> dict:
    return {**job.data, "told": job.identifiers["primary_id"]}
"""

TWO = 'stages = ["downloading", "notify"]\n'


@pytest.fixture
def ingest(house: House) -> House:
    (house.home / "app.py").write_text(APP)
    (house.home / "maitred.toml").write_text(f"[queues.default]\n{TWO}")
    return house


async def test_up_carries_jobs_through_their_stages(ingest: House) -> None:
    up, address = ingest.comes_up("up", "--port", "0", "--slots", "1", "--app", "app")
    async with Client(address) as client:
        job = await ended(client, await client.put("default", sent("a", args={"size": 7})))
    assert (job.state, job.last_successful_status, job.code) == ("completed", "notify", None)
    assert (job.result, job.identifiers) == ({"size": 7, "told": "ark:/a"}, {"primary_id": "ark:/a"})
    assert [(entry.stage, entry.code) for entry in job.timeline] == [("downloading", None), ("notify", None)]
    assert "Traceback" not in ingest.stops(up)


def test_a_function_for_a_stage_that_the_queue_does_not_have_is_named_at_the_start(ingest: House) -> None:
    (ingest.home / "maitred.toml").write_text('[queues.default]\nstages = ["downloading", "recording"]\n')
    up = ingest.starts("up", "--port", "0", "--slots", "1", "--app", "app")
    _, said = up.communicate(timeout=60)
    assert up.returncode == 2, said
    assert "maitred: Queue 'default' has no stage 'notify'; its stages are downloading, recording.\n" in said


async def test_stages_that_cannot_change_are_named_with_the_reason(ingest: House) -> None:
    up, address = ingest.comes_up("up", "--port", "0", "--slots", "0")
    async with Client(address) as client:
        await client.put("default", sent("a", args={"size": 7}))
    ingest.stops(up)
    again = ingest.starts("up", "--port", "0", MAITRED_QUEUES__DEFAULT__STAGES="downloading,recording")
    _, said = again.communicate(timeout=60)
    assert again.returncode == 5, said
    assert said == (
        "maitred: queues.default.stages: cannot change from downloading, notify to downloading, recording "
        "while there are jobs that have not ended.\n"
    )
