"""What the queue runs for both web apps: a handler that gives an essay its points."""

import maitred

q = maitred.Queue("default")


@q.handler("grade")
async def grade(text: str) -> dict[str, int]:
    words = len(text.split())
    return {"words": words, "points": min(10, words)}
