"""What runs say and leave behind where the ledger is a tree: the line keeps it, from stage to stage."""

import pytest

from maitred.core.job import Typed
from maitred.core.output import Artifact, ArtifactView, Part, Saying
from maitred.errors import LeaseLost, NotRunning
from tests.zookeeper.house import NEEDS, House, finish


async def test_a_run_is_heard_and_what_it_made_is_kept_from_stage_to_stage(house: House) -> None:
    [put] = await house.put("a")
    [start] = (await house.store.join("w", 1, NEEDS, b'{"sandbox": []}')).starts
    said = (Part("stdout", b"one"), Part("progress", b"{}"))
    assert await house.store.say("w", [Saying(start.lease, said)]) == []
    await house.store.keep("w", start.lease, [Artifact("f", "text/plain", b"123")])
    assert (await house.job("a")).progress == b"{}"
    last = finish(start, said=(Part("stderr", b"two"),))
    [second] = (await house.store.finish("w", [last])).starts
    assert await house.store.say("w", [Saying(start.lease, said)]) == [start.lease]
    with pytest.raises(LeaseLost):
        await house.store.keep("w", start.lease, [])
    await house.store.say("w", [Saying(second.lease, (Part("stdout", b"three"),))])
    output = await house.store.output("a", None, 0, 9)
    assert output
    assert [chunk.data for chunk in output.chunks] == [b"one", b"{}", b"two", b"three"]
    assert (await house.job("a")).progress == b""
    assert await house.store.artifact("a", 1, "f") == Artifact("f", "text/plain", b"123")
    assert [worker.about for worker in (await house.store.status()).workers] == [b'{"sandbox": []}']
    assert await house.store.type_in(put.record, b"x", None)
    assert Typed(second.lease, b"x") in await house.store.park("w", 1)
    assert await house.store.check() == []


async def test_what_the_tree_changes_leaves_output_and_artifacts_alone(house: House) -> None:
    [put] = await house.put("a")
    [start] = (await house.store.join("w", 1, NEEDS)).starts
    await house.store.say("w", [Saying(start.lease, (Part("stdout", b"one"),))])
    await house.store.keep("w", start.lease, [Artifact("f", "", b"")])
    await house.store.cancel("a", "cancelled by u: no")
    await house.tree.reconcile()
    job = await house.job("a")
    assert (job.code, job.artifacts) == ("cancelled", (ArtifactView("f", "", 0),))
    with pytest.raises(NotRunning):
        await house.store.type_in(put.record, b"x", None)
    await house.store.remove("a")
    snapshot = await house.store.snapshot()
    assert (snapshot.outputs, snapshot.files) == ({}, {})
    assert await house.store.check() == []
