"""Scripts over HTTP: from the submit to the result, alone and in a batch."""

from typing import Any

import pytest

from maitred import Queue
from maitred.core.settings import Settings
from maitred.errors import InvalidJob
from maitred.service.handlers import Handlers
from maitred.store.memory import MemoryStores
from maitred.worker import Worker
from tests.http.guest import is_problem
from tests.http.house import open_house, until
from tests.working import at_work

SCRIPT: list[dict[str, Any]] = [
    {
        "label": "compile",
        "cmd": ["sh", "-n", "answer.sh"],
        "on_fail": {"cmd": "echo no", "on_complete": "abort"},
    },
    {"cmd": "sh answer.sh", "timeout": 60},
]


@pytest.mark.parametrize(
    ("answer", "state", "code", "printed"),
    [("echo 42", "completed", None, ["", "42\n"]), ("if then", "failed", "script", ["", "no\n"])],
)
async def test_a_script_is_submitted_and_its_responses_are_the_result(
    queue_name: str, answer: str, state: str, code: str | None, printed: list[str]
) -> None:
    run = {"script": SCRIPT, "files": {"answer.sh": {"text": answer}}}
    async with open_house(queue_name) as house, at_work(Worker(house.store, Handlers(), 1)):
        job = await house.guest.submits(run=run)
        assert job["run"] == {"script": SCRIPT, "files": ["answer.sh"], "artifacts": []}
        async with house.watching(job["id"]) as stream:
            await until(stream, "result")
        ended = (await house.guest.asks("GET", job["id"])).json()
    assert (ended["state"], ended["code"]) == (state, code)
    responses = ended["result"]["responses"]
    assert [each["stdout"] for each in responses] == printed
    assert responses[0]["label"] == "compile"
    assert all(each.keys() >= {"step", "cmd", "status", "timed_out", "stderr"} for each in responses)


async def test_the_jobs_of_a_batch_may_be_scripts(queue_name: str) -> None:
    async with open_house(queue_name) as house:
        batches = f"{house.guest.url}/batches"
        submitter = {"type": "user", "id": "ada"}
        jobs = [
            {"key": "a", "run": {"script": [{"cmd": ""}]}},
            {"key": "b", "run": {"script": [{"cmd": "ls"}]}},
        ]
        refused = await house.guest.http.post(batches, json={"submitter": submitter, "jobs": jobs})
        assert is_problem(refused, 422, "invalid")
        assert [fault["path"] for fault in refused.json()["errors"]] == ["jobs.0.run.script.0.cmd"]
        taken = await house.guest.http.post(batches, json={"submitter": submitter, "jobs": jobs[1:]})
        assert taken.status_code == 201


async def test_a_program_puts_scripts_like_commands(queue_name: str) -> None:
    stores = MemoryStores()
    await stores.queue(queue_name).configure(Settings())
    queue = Queue(queue_name, store=stores)
    accepted = await queue.put("a", submitter="user:7", script=SCRIPT)
    assert (await queue.job(accepted.id)).run["script"] == SCRIPT
    with pytest.raises(InvalidJob) as refused:
        await queue.put("b", submitter="user:7", script=[{"cmd": "ls", "on_fail": 7}])
    assert [fault.path for fault in refused.value.faults] == ["run.script.0.on_fail"]


async def test_the_description_has_the_steps(queue_name: str) -> None:
    async with open_house(queue_name) as house:
        schemas = (await house.guest.http.get("/openapi.json")).json()["components"]["schemas"]
    refs = [
        each["$ref"].rpartition("/")[2]
        for each in schemas["ScriptRun"]["properties"]["script"]["items"]["anyOf"]
    ]
    assert refs == ["CommandStep", "ConditionStep"]
    assert {"$ref": "#/components/schemas/CommandStep"} in schemas["CommandStep"]["properties"]["on_fail"][
        "anyOf"
    ]
