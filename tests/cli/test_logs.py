"""Logs of a house for programs: JSON objects that name the job, its queue and its lease."""

import io
import json
import re
from typing import Any

import httpx
import pytest
import structlog

from maitred.cli.logs import write_logs
from tests.cli.house import House
from tests.waiting import eventually

FAILING = """
import maitred
import structlog

q = maitred.Queue("default")

@q.handler("fails")
def fails():
    structlog.get_logger().info("from the handler")
    raise ValueError("by design")
"""


@pytest.mark.parametrize("how", ["option", "environment", "file"])
async def test_logs_are_json_objects_if_asked_for(house: House, how: str) -> None:
    (house.home / "app.py").write_text(FAILING)
    words = ["up", "--port", "0", "--slots", "1", "--app", "app"]
    environment: dict[str, Any] = {}
    if how == "option":
        words += ["--log-format", "json"]
    elif how == "environment":
        environment = {"MAITRED_LOG__FORMAT": "json"}
    else:
        config = house.home / "maitred.toml"
        config.write_text('[log]\nformat = "json"\n' + config.read_text())
    up = house.starts(*words, **environment)
    assert up.stdout
    line = next((line for line in up.stdout if "ready" in line), "")
    address = line.split()[-1]
    async with httpx.AsyncClient(base_url=address, trust_env=False) as http:
        body = {"key": "k", "submitter": {"type": "user", "id": "1"}, "run": {"handler": "fails"}}
        job = (await http.put("/api/v1/queues/default/jobs", json=body)).json()

        async def ended() -> bool:
            shown = (await http.get(f"/api/v1/queues/default/jobs/{job['id']}")).json()
            return bool(shown["code"])

        await eventually(ended)
    said = [json.loads(line) for line in house.stops(up).splitlines()]
    [own] = [line for line in said if line["event"] == "from the handler"]
    [raised] = [line for line in said if line["event"] == "a handler raised"]
    for line in (own, raised):
        assert (line["job"], line["queue"], line["level"]) == (job["id"], "default", "info")
        assert re.fullmatch(r"\d+\.1", line["lease"])
        assert line["timestamp"].endswith("Z")
    assert "ValueError: by design" in raised["exception"]


class _Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("colours", [True, False])
def test_logs_for_people_have_colours_unless_they_want_none(
    monkeypatch: pytest.MonkeyPatch, *, colours: bool
) -> None:
    monkeypatch.setenv("NO_COLOR", "" if colours else "1")
    screen = _Screen()
    write_logs(screen)
    structlog.get_logger().info("open")
    structlog.reset_defaults()
    assert ("\x1b[" in screen.getvalue()) == colours
