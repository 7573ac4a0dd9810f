"""A receiver tells a message of Maitred from one that anybody could have sent."""

import hmac
from base64 import b64encode
from hashlib import sha256

import pytest

from maitred import webhooks
from maitred.errors import ConfigError, ForgedWebhook, MalformedWebhook, StaleWebhook

KEY, OTHER = (b"%d" % n * 24 for n in (1, 2))
SECRET, SECOND_SECRET = (f"whsec_{b64encode(key).decode()}" for key in (KEY, OTHER))
BODY = b'{"type":"job.ended"}'


def signed(*secrets: str, id: str = "job_1", at: int = 1_000, body: bytes = BODY) -> dict[str, str]:
    return {
        "Webhook-Id": id,
        "Webhook-Timestamp": str(at),
        "Webhook-Signature": " ".join(webhooks.signature(secret, id, at, body) for secret in secrets),
    }


def test_the_signature_is_that_of_standard_webhooks() -> None:
    digest = hmac.new(KEY, b"job_1.1000." + BODY, sha256).digest()
    assert webhooks.signature(SECRET, "job_1", 1_000, BODY) == f"v1,{b64encode(digest).decode()}"


def test_a_message_that_is_signed_gives_its_id() -> None:
    assert webhooks.verify(SECRET, signed(SECRET), BODY, now=1_000) == "job_1"


def test_while_a_secret_is_replaced_either_is_good() -> None:
    both = signed(SECOND_SECRET, SECRET)
    for known in (SECRET, SECOND_SECRET, [SECRET, SECOND_SECRET]):
        assert webhooks.verify(known, both, BODY, now=1_000) == "job_1"
    assert webhooks.verify([SECRET, SECOND_SECRET], signed(SECRET), BODY, now=1_000) == "job_1"


@pytest.mark.parametrize(
    "change",
    [
        {"Webhook-Id": "job_2"},
        {"Webhook-Timestamp": "1001"},
        {"Webhook-Signature": "v1,AAAA"},
        {"Webhook-Signature": "v1a,AAAA"},
    ],
)
def test_a_message_that_was_changed_is_forged(change: dict[str, str]) -> None:
    with pytest.raises(ForgedWebhook):
        webhooks.verify(SECRET, signed(SECRET) | change, BODY, now=1_000)


def test_another_body_or_secret_is_forged_and_so_is_everything_without_a_secret() -> None:
    for secret, body in ((SECRET, BODY + b" "), (SECOND_SECRET, BODY), ([], BODY)):
        with pytest.raises(ForgedWebhook):
            webhooks.verify(secret, signed(SECRET), body, now=1_000)


@pytest.mark.parametrize("now", [1_301, 699])
def test_a_message_of_long_ago_or_of_the_future_is_stale(now: int) -> None:
    with pytest.raises(StaleWebhook):
        webhooks.verify(SECRET, signed(SECRET), BODY, now=now)
    assert webhooks.verify(SECRET, signed(SECRET), BODY, tolerance=302, now=now)


@pytest.mark.parametrize(
    "change",
    [
        {"Webhook-Id": ""},
        {"Webhook-Timestamp": "-1"},
        {"Webhook-Timestamp": "²"},
        {"Webhook-Timestamp": "9" * 400},
        {"Webhook-Signature": "v1,?"},
    ],
)
def test_headers_that_make_no_sense_are_malformed(change: dict[str, str]) -> None:
    with pytest.raises(MalformedWebhook):
        webhooks.verify(SECRET, signed(SECRET) | change, BODY, now=1_000)
    with pytest.raises(MalformedWebhook):
        webhooks.verify(SECRET, {}, BODY)


@pytest.mark.parametrize(
    "secret", ["", "whsec_", "whsec_?", f"whsec_{b64encode(b'short').decode()}", SECRET[6:]]
)
def test_what_is_no_secret_is_said_so_and_not_repeated(secret: str) -> None:
    with pytest.raises(ConfigError) as refused:
        webhooks.verify(secret, signed(SECRET), BODY)
    assert not secret or secret.removeprefix("whsec_") not in str(refused.value) or secret == "whsec_"
