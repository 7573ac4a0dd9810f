"""The commands about callbacks: the secret for receivers, and the tries at a job's callbacks."""

from tests.cli.conftest import Terminal


def test_the_secret_is_shown_alone_so_that_it_can_be_copied(served: Terminal) -> None:
    shown = served.types("keys", "secret").stdout
    assert shown.startswith("whsec_")
    assert shown == served.types("keys", "secret", "local").stdout
    assert shown.strip() == served.gets("keys", "secret")["secrets"][0]["secret"]


def test_a_new_secret_is_made_on_demand(served: Terminal) -> None:
    old = served.types("keys", "secret").stdout.strip()
    new = served.types("keys", "secret", "--rotate", "--keep", "1h").stdout.strip()
    assert new != old
    [first, second] = served.gets("keys", "secret")["secrets"]
    assert (first["secret"], second["secret"]) == (new, old)
    last = served.gets("keys", "secret", "--rotate", "--keep", "0s")
    assert len(last["secrets"]) == 1


def test_keys_are_listed_without_their_secrets(served: Terminal) -> None:
    shown = served.tells("keys", "list")
    assert "local admin" in shown
    assert "whsec_" not in shown
    assert served.gets("keys", "list")["items"][0]["id"] == "local"


def test_what_is_asked_wrongly_is_said(served: Terminal) -> None:
    nobody = served.types("keys", "secret", "nobody")
    assert (nobody.exit_code, nobody.stderr) == (4, "maitred: there is no key 'nobody'\n")
    alone = served.types("keys", "secret", "--keep", "1h")
    assert (alone.exit_code, alone.stderr) == (2, "maitred: --keep goes with --rotate.\n")
    assert served.types("deliveries", "nobody").exit_code == 4


def test_a_job_of_which_nothing_was_told_says_so(served: Terminal) -> None:
    job = served.gets("submit", "--", "ls")
    assert served.tells("deliveries", job["id"]) == "Nothing was sent yet."
    assert served.gets("deliveries", job["id"])["items"] == []
