"""Keys and deliveries over HTTP: secrets are shown and replaced, and each try at a callback can be seen."""

import pytest

from maitred.client import Client
from maitred.core.notices import Delivery
from maitred.errors import InvalidJob, UnknownJob, UnknownKey
from tests.http.guest import Guest, is_problem
from tests.http.house import House


@pytest.fixture(params=["memory", "valkey"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def test_the_local_key_is_listed_with_its_secret(guest: Guest) -> None:
    answer = await guest.http.get("/api/v1/keys")
    listed = answer.json()
    assert (listed["next"], listed["total"]) == (None, len(listed["items"]))
    [local] = [key for key in listed["items"] if key["id"] == "local"]
    assert (local["role"], local["revoked"]) == ("admin", False)
    assert local["secrets"][0]["secret"].startswith("whsec_")
    assert local["secrets"][0]["until"] is None
    assert "sha256" not in answer.text


async def test_a_secret_is_replaced_and_the_old_one_is_kept_for_a_time(guest: Guest) -> None:
    async def rotated(**asked: object) -> list[dict[str, str | None]]:
        answer = await guest.http.post("/api/v1/keys/local/rotate", json=asked)
        assert answer.status_code == 200, answer.text
        secrets: list[dict[str, str | None]] = answer.json()["secrets"]
        return secrets

    [first, *_] = await rotated(keep=0)
    new, old = await rotated()
    assert (old["secret"], new["until"]) == (first["secret"], None)
    assert old["until"]
    assert [each["secret"] for each in (await rotated(keep=0))] != [new["secret"]]


async def test_what_cannot_be_is_refused(guest: Guest) -> None:
    for asked in ({"keep": -1}, {"keep": "1"}, {"keep": 1e9}, {"secret": "mine"}):
        assert is_problem(await guest.http.post("/api/v1/keys/local/rotate", json=asked), 422, "invalid")
    assert is_problem(await guest.http.post("/api/v1/keys/nobody/rotate"), 404, "unknown-key")


async def test_each_try_at_a_callback_is_listed(guest: Guest) -> None:
    id = (await guest.submits(response_url="http://example.org/"))["id"]
    assert (await guest.sees(f"/jobs/{id}/deliveries"))["items"] == []
    await guest.store.join("w", 1, ["handler:grade"])
    token = b"t" * 16
    [(view, notice)] = await guest.store.lock_notices("test", token, 1)
    tried = Delivery(notice.number, "started", view.now, 1, "again", "503 no", 1500, view.now + 1)
    await guest.store.told_notice(view.job.record, notice.number, token, tried)
    page = await guest.sees(f"/jobs/{id}/deliveries")
    [only] = page["items"]
    assert (page["total"], only["took"]) == (1, 0.0015)
    assert only["id"] == f"job_{guest.store.queue}_{notice.number}"
    assert (only["type"], only["attempt"], only["answer"]) == ("job.started", 1, "again")
    assert (only["said"], only["next_at"] > only["at"]) == ("503 no", True)
    assert is_problem(await guest.asks("GET", "nobody", "/deliveries"), 404, "unknown-job")


async def test_the_client_asks_for_keys_and_deliveries(house: House) -> None:
    async with Client(str(house.guest.http.base_url)) as client:
        [local] = (await client.keys()).items
        rotated = await client.rotate_key("local", keep=60)
        assert rotated.secrets[1].secret == local.secrets[0].secret
        id = (await house.guest.submits())["id"]
        assert (await client.deliveries(house.store.queue, id)).items == []
        with pytest.raises(UnknownJob):
            await client.deliveries(house.store.queue, "nobody")
        for name in ("nobody", "a/b", ".."):
            with pytest.raises(UnknownKey):
                await client.rotate_key(name)
        with pytest.raises(InvalidJob):
            await client.rotate_key("local", keep=-1)
