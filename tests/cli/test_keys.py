"""Keys on the command line: the first is made without a server; one that others reach needs a key."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.cli.conftest import Terminal
from tests.cli.house import House


def made(house: House, *words: str, key: str | None = None, code: int = 0) -> Any:
    """Type a command of keys that answers in JSON, with a key or without."""
    process = house.starts(*words, "--json", MAITRED_KEY=key or "")
    said, trouble = process.communicate(timeout=60)
    assert process.returncode == code, trouble
    return json.loads(said) if code == 0 else trouble


def test_the_first_key_is_made_without_a_server_and_then_others_may_reach_one(house: House) -> None:
    admin = made(house, "keys", "create", "--role", "admin", "--name", "root")
    assert admin["key"].startswith("mk_")
    up, address = house.comes_up("up", "--port", "0", "--slots", "0", "--host", "0.0.0.0")
    assert address.startswith("http://127.0.0.1:")
    assert httpx.get(f"{address}/api/v1/queues").status_code == 401
    assert "a key is needed" in made(house, "keys", "list", code=1).lower()
    listed = made(house, "keys", "list", key=admin["key"])["items"]
    assert {each["name"] for each in listed} >= {"root"}
    # Whoever has the store needs no key, and what they do there is told too.
    viewer = made(house, "keys", "create", "--role", "viewer", "--local")
    assert made(house, "line", key=viewer["key"])["items"] == []
    refused = made(house, "pause", key=viewer["key"], code=1)
    assert "the key's role is viewer" in refused
    renewed = made(house, "keys", "rotate", viewer["id"], key=admin["key"])
    assert "the key is not good" in made(house, "line", key=viewer["key"], code=1)
    made(house, "keys", "revoke", viewer["id"], key=admin["key"])
    assert "the key is not good" in made(house, "line", key=renewed["key"], code=1)
    log = made(house, "audit", key=admin["key"])["items"]
    assert [each["name"] for each in log] == ["root", "root", viewer["name"], "admin", "admin"]
    assert [each["address"] for each in log] == [*["127.0.0.1"] * 3, "the store", "the store"]
    house.stops(up)


def test_the_key_is_read_from_a_file(served: Terminal, tmp_path: Path) -> None:
    key = served.gets("keys", "create", "--role", "operator", "--name", "ops")["key"]
    file = tmp_path / "key"
    file.write_text(f"{key}\n")
    assert served.types("pause").exit_code == 1
    paused = served.types("--key-file", str(file), "pause", "--json")
    assert json.loads(paused.stdout)["pause"]["by"] == "ops"
    assert "cannot be read" in served.types("--key-file", str(tmp_path / "no"), "pause").stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--role", "king"), "role"),
        (("--role", "submitter"), "submitters must be named"),
        (("--role", "viewer", "--expires", "soon"), "--expires"),
    ],
)
def test_a_key_that_makes_no_sense_is_refused(
    served: Terminal, words: tuple[str, ...], sentence: str
) -> None:
    answer = served.types("keys", "create", *words)
    assert answer.exit_code != 0
    assert sentence in answer.stderr


def test_a_key_is_shown_once_with_all_that_it_is_good_for(served: Terminal) -> None:
    asked = ("--role", "submitter", "--submitter", "user:ada", "--queue", "default", "--expires", "90d")
    shown = served.tells("keys", "create", *asked)
    assert all(word in shown for word in ("mk_", "user:ada", "default", "expires", "whsec_"))
