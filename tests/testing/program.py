"""A program as users write it: a queue that is found when it is first asked, with handlers."""

from typing import Any

import maitred

q = maitred.Queue("default")
again = maitred.Queue("again")
runs: list[tuple[str, int]] = []


@q.handler("mean")
async def mean(points: list[float]) -> float:
    runs.append((maitred.current_job().key, maitred.current_job().attempt))
    return sum(points) / len(points)


@q.handler("flaky")
def flaky(until: int) -> str:
    job = maitred.current_job()
    runs.append((job.key, job.attempt))
    if job.attempt < until:
        raise maitred.Transient("not yet")
    return f"attempt {job.attempt}"


@q.handler("chain")
async def chain(length: int) -> None:
    """Submit the next one, as programs do."""
    if length:
        await q.put(f"chain-{length}", submitter="user:ada", handler="chain", args={"length": length - 1})


@again.handler("again")
async def for_ever(number: int) -> None:
    """Submit itself an hour later."""
    later = {"number": number + 1}
    await again.put(f"n-{number}", submitter="user:ada", handler="again", args=later, delay=3600)


def body(key: str, handler: str = "mean", who: str = "ada", **more: Any) -> dict[str, Any]:
    """Give a body as HTTP has it."""
    args = more.pop("args", {"points": [1, 2, 6]})
    submitter = {"type": "user", "id": who}
    return {"key": key, "submitter": submitter, "run": {"handler": handler, "args": args}, **more}
