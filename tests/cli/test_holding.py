"""The commands that hold and let go, try again, and change a priority."""

from tests.cli.conftest import Terminal


def test_a_job_is_held_and_resumed_and_says_why(served: Terminal) -> None:
    job = served.gets("submit", "--as", "user:1", "--", "ls")["id"]
    held = served.tells("hold", job, "--reason", "no disk")
    assert "state held" in held
    assert "held by admin (no disk)" in held
    assert served.gets("resume", job)["state"] == "pending"
    again = served.types("resume", job)
    assert (again.exit_code, "is not held by itself" in again.stderr) == (5, True)


def test_a_submitter_and_a_profile_are_held_and_resumed(served: Terminal) -> None:
    served.gets("submit", "--as", "user:7", "--", "ls")
    held = served.types("hold", "--submitter", "user:7")
    assert held.stdout == "user:7 is held: 1 waiting.\n"
    assert served.gets("hold", "--submitter", "user:7")["held"]
    assert served.types("resume", "--submitter", "user:7").stdout == "user:7 is not held: 1 waiting.\n"
    held = served.types("hold", "--profile", "nightly", "--reason", "later")
    assert held.stdout == "nightly is held by admin (later).\n"
    assert served.types("resume", "--profile", "nightly").stdout == "nightly is not held.\n"
    wrong = served.types("hold", "--submitter", "seven")
    assert (wrong.exit_code, "--submitter takes user:ID" in wrong.stderr) == (2, True)


def test_resume_without_a_name_opens_the_queue_as_ever(served: Terminal) -> None:
    served.gets("pause", "--reason", "lunch")
    assert served.types("resume").stdout == "default is open: 0 waiting, 0 running, no slots.\n"


def test_one_thing_is_held_or_resumed_at_a_time(served: Terminal) -> None:
    assert served.types("hold").exit_code == 2
    assert served.types("hold", "x", "--profile", "p").exit_code == 2
    assert served.types("resume", "x", "--submitter", "user:1").exit_code == 2


def test_a_priority_is_changed_and_one_that_is_none_refused(served: Terminal) -> None:
    job = served.gets("submit", "--", "ls")["id"]
    assert served.gets("priority", job, "2")["priority"] == 2
    for number in ("105", "-1"):
        refused = served.types("priority", job, "--", number)
        assert (refused.exit_code, "from 0 to 99" in refused.stderr) == (1, True), refused.output


def test_only_a_failed_job_is_retried(served: Terminal) -> None:
    job = served.gets("submit", "--", "ls")["id"]
    early = served.types("retry", job)
    assert (early.exit_code, "Only a job that failed" in early.stderr) == (5, True)
    served.gets("cancel", job)
    assert served.gets("retry", job)["retry_count"] == 1
    assert "retries 1" in served.tells("show", job)


def test_a_queue_whose_ledger_is_in_its_store_has_nothing_to_reconcile(served: Terminal) -> None:
    told = served.types("reconcile").stdout
    assert told == "Nothing to do for default: its ledger is in the same store.\n"
    assert served.gets("reconcile")["changes"] == []


def test_the_queue_says_how_many_are_held(served: Terminal) -> None:
    job = served.gets("submit", "--", "ls")["id"]
    served.gets("hold", job)
    assert served.types("line").stdout == "default is open: 0 waiting, 1 held, 0 running, no slots.\n"
