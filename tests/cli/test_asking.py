"""The commands that ask: what they print, and how they end."""

import getpass
import json
from pathlib import Path

import pytest

from maitred.cli.app import app
from tests.cli.conftest import Terminal


def test_a_program_is_submitted_under_a_random_key_and_the_login_name(served: Terminal) -> None:
    job = served.gets("submit", "--", "echo", "--json", "hello")
    assert job["run"]["command"] == ["echo", "--json", "hello"]
    assert job["submitter"] == {"type": "user", "id": getpass.getuser()}
    assert (job["outcome"], job["position"]) == ("created", 1)
    assert served.gets("submit", "--", "echo")["key"] != job["key"]


def test_a_handlers_job_takes_arguments_as_json_or_text(served: Terminal) -> None:
    job = served.gets(
        "submit", "--handler", "grade", "--arg", "n=3", "--arg", "name=ada", "--arg", "x=a=b", "--key", "k"
    )
    assert job["run"] == {"handler": "grade", "args": {"n": 3, "name": "ada", "x": "a=b"}}


def test_an_argument_that_only_python_takes_for_json_is_text(served: Terminal) -> None:
    job = served.gets(
        "submit", "--handler", "grade", "--arg", "a=NaN", "--arg", "b=[1e999]", "--arg", "c=1e3"
    )
    assert job["run"]["args"] == {"a": "NaN", "b": "[1e999]", "c": 1000.0}


def test_every_option_of_submit_arrives(served: Terminal, tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("print(1)")
    (tmp_path / "data.bin").write_bytes(b"\xff\x00")
    job = served.gets(
        *("submit", "--key", "k", "--as", "team:red", "--delay", "60", "--priority", "1", "--bulk"),
        *("-f", str(tmp_path / "main.py"), "-f", str(tmp_path / "data.bin"), "--", "python", "main.py"),
    )
    assert (job["key"], job["submitter"]) == ("k", {"type": "team", "id": "red"})
    assert (job["delay"], job["priority"], job["band"]) == (60.0, 1, "bulk")
    assert job["run"]["files"] == ["data.bin", "main.py"]
    assert served.gets("submit", "--immediate", "--", "ls")["band"] == "immediate"


STEPS = [{"cmd": "make", "on_fail": "clean"}, {"cmd": ["rm", "-r", "out"], "label": "clean"}]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("steps.json", json.dumps(STEPS)),
        ("steps.json", json.dumps({"script": STEPS})),
        (
            "steps.toml",
            """
            [[script]]
            cmd = "make"
            on_fail = "clean"
            [[script]]
            cmd = ["rm", "-r", "out"]
            label = "clean"
            """,
        ),
    ],
)
def test_a_script_is_read_from_json_or_toml(served: Terminal, tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    (tmp_path / "Makefile").write_text("all:")
    job = served.gets("submit", "--script", str(tmp_path / name), "-f", str(tmp_path / "Makefile"))
    assert (job["run"]["script"], job["run"]["files"]) == (STEPS, ["Makefile"])


def test_files_of_the_program_to_keep_are_named(served: Terminal, tmp_path: Path) -> None:
    job = served.gets("submit", "--artifact", "a.out", "--artifact", "log/b", "--", "make")
    assert job["run"]["artifacts"] == ["a.out", "log/b"]
    (tmp_path / "steps.json").write_text(json.dumps({"script": STEPS, "artifacts": ["own"]}))
    job = served.gets("submit", "--script", str(tmp_path / "steps.json"), "--artifact", "more")
    assert job["run"]["artifacts"] == ["own", "more"]


def test_a_script_may_bring_files_of_its_own(served: Terminal, tmp_path: Path) -> None:
    (tmp_path / "steps.json").write_text(json.dumps({"script": STEPS, "files": {"a": {"text": "x"}}}))
    (tmp_path / "b").write_text("y")
    job = served.gets("submit", "--script", str(tmp_path / "steps.json"), "-f", str(tmp_path / "b"))
    assert job["run"]["files"] == ["a", "b"]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("steps.json", "{", "is not JSON"),
        ("steps.json", '{"steps": []}', "is no script"),
        ("steps.json", '"make"', "is no script"),
        ("steps.json", '{"script": [], "files": []}', "is no script"),
        ("steps.toml", "[[script", "is not TOML"),
        ("steps.json", '[{"cmd": "make", "on_fail": "cleen"}]', "run.script.0.on_fail"),
    ],
)
def test_what_is_no_script_is_refused(
    served: Terminal, tmp_path: Path, name: str, text: str, said: str
) -> None:
    (tmp_path / name).write_text(text)
    refused = served.types("submit", "--script", str(tmp_path / name))
    assert refused.exit_code
    assert said in refused.stderr


def test_a_job_is_a_script_or_a_program(served: Terminal) -> None:
    refused = served.types("submit", "--script", "steps.json", "--", "ls")
    assert (refused.exit_code, "not both" in refused.stderr) == (2, True)


def test_metadata_an_expiry_and_a_response_address_arrive_too(served: Terminal) -> None:
    job = served.gets(
        *(
            "submit",
            "--metadata",
            "course=cs101",
            "--metadata",
            "note=a=b",
            "--expires-at",
            "2199-01-01T00:00:00Z",
        ),
        *("--response-url", "http://example.org/", "--", "ls"),
    )
    assert job["metadata"] == {"course": "cs101", "note": "a=b"}
    assert job["expires_at"] == "2199-01-01T00:00:00.000000Z"
    assert job["response_url"] == "http://example.org/"


def test_a_class_or_a_duration_is_asked_for_and_shown(served: Terminal) -> None:
    named = served.gets("submit", "-q", "render", "--class", "slow", "--", "ls")
    assert (named["class"], named["duration"]) == ("slow", 30.0)
    timed = served.types("submit", "-q", "render", "--duration", "500ms", "--", "ls").stdout
    assert "class        fast, 500ms " in timed
    elastic = served.types("submit", "-q", "render", "--", "ls").stdout
    assert "class        elastic, up to 30s " in elastic
    _, heading, *rows = served.types("line", "-q", "render").stdout.splitlines()
    assert heading.split()[:5] == ["#", "key", "submitter", "band", "class"]
    assert [row.split()[4] for row in rows] == ["slow", "elastic", "fast"]
    served.gets("submit", "--", "ls")
    _, heading, _ = served.types("line").stdout.splitlines()
    assert "class" not in heading, "a queue with one class has nothing to tell apart"


def test_a_job_is_made_shorter_and_never_longer(served: Terminal) -> None:
    job = served.gets("submit", "-q", "render", "--class", "slow", "--", "ls")["id"]
    shorter = served.gets("shorten", "-q", "render", job, "5s")
    assert (shorter["class"], shorter["duration"]) == ("medium", 5.0)
    longer = served.types("shorten", "-q", "render", job, "1m")
    assert (longer.exit_code, "at most 30 s (fast 3 s" in longer.stderr) == (1, True)
    longer = served.types("shorten", "-q", "render", job, "6s")
    assert (longer.exit_code, "can only be lowered" in longer.stderr) == (5, True)


def test_an_id_in_the_line_is_whole_however_narrow_the_terminal_is(
    served: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = served.gets("submit", "--key", "k" * 60, "--as", "user:" + "u" * 60, "--", "ls")["id"]
    for columns in ("40", "60", "80"):
        monkeypatch.setenv("COLUMNS", columns)
        assert job in served.types("line").stdout, columns


def test_the_line_is_a_table_for_people(served: Terminal) -> None:
    assert served.types("line").stdout == "default is open: 0 waiting, 0 running, no slots.\n"
    for key in ("first", "second", "[red]third\x1b[0m"):
        served.gets("submit", "--key", key, "--", "ls")
    table = served.types("line", "-n", "2").stdout
    assert table.splitlines()[0] == "default is open: 3 waiting, 0 running, no slots."
    assert "third" in table
    assert "\x1b" not in table
    assert "[red]" in table
    assert "no worker serves 'command' at the moment" in table
    assert "and 1 more" in table
    assert [job["position"] for job in served.gets("line")["items"]] == [1, 2, 3]


def test_jobs_are_shown_moved_cancelled_and_deleted(served: Terminal) -> None:
    first = served.gets("submit", "--as", "user:1", "--", "ls")["id"]
    second = served.gets("submit", "--as", "user:2", "--", "ls")["id"]
    assert served.gets("delay", first)["position"] == 2
    assert served.gets("release", first)["position"] == 1
    assert "front" in served.types("show", first).stdout
    cancelled = served.gets("cancel", second, "--reason", "wrong file")
    assert cancelled["message"] == "cancelled by admin: wrong file"
    assert served.gets("rm", first) == {"deleted": first}
    assert served.types("rm", second).stdout == f"Deleted {second}.\n"
    assert served.gets("line")["total"] == 0


def test_a_queue_is_paused_and_resumed(served: Terminal) -> None:
    counts = "0 waiting, 0 running, no slots.\n"
    assert served.types("pause").stdout == f"default is paused by admin: {counts}"
    assert (
        served.types("pause", "--reason", "lunch\n").stdout
        == f"default is paused by admin (lunch�): {counts}"
    )
    assert served.types("resume").stdout == f"default is open: {counts}"
    assert served.gets("pause", "--reason", "lunch")["pause"]["reason"] == "lunch"


def test_in_a_paused_queue_the_line_and_each_job_say_who_paused_it_and_why(served: Terminal) -> None:
    job = served.gets("submit", "--", "ls")["id"]
    served.gets("pause", "--reason", "lunch")
    headline, _, first = served.types("line").stdout.splitlines()
    assert headline == "default is paused by admin (lunch): 1 waiting, 0 running, no slots."
    assert "the queue is paused by admin: lunch" in first
    assert "the queue is paused by admin: lunch" in served.types("show", job).stdout


def test_a_sound_queue_is_called_so(served: Terminal) -> None:
    served.gets("submit", "--", "ls")
    assert served.types("check").stdout == "default is sound.\n"
    assert served.gets("check", "--repair") == {"queue": "default", "violations": []}


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("show", "nobody"), 4, "queue 'default' has no job 'nobody'"),
        (("line", "-q", "nope"), 4, "there is no queue 'nope'"),
        (("submit", "--priority", "500", "--", "ls"), 1, "priority must be a whole number from 0 to 99"),
        (("submit", "--as", "robot:7", "--", "ls"), 1, 'submitter.type must be "user" or "team"'),
        (("submit", "--as", "7", "--", "ls"), 2, "--as takes user:ID or team:ID"),
        (("submit",), 2, "Say what to run"),
        (("submit", "--handler", "grade", "--", "ls"), 2, "not both"),
        (("submit", "--arg", "a=1", "--", "ls"), 2, "--arg goes with --handler"),
        (("submit", "--handler", "grade", "--arg", "a"), 2, "--arg takes name=value"),
        (("submit", "--metadata", "a", "--", "ls"), 2, "--metadata takes name=value"),
        (("submit", "--expires-at", "tomorrow", "--", "ls"), 1, "expires_at must be a time with its zone"),
        (("submit", "-f", "/nowhere/at/all", "--", "ls"), 2, "cannot be read"),
        (("submit", "--delay", "nan", "--", "ls"), 1, "delay must be a finite number"),
        (("submit", "--delay", "inf", "--", "ls"), 1, "delay must be a finite number"),
        (("submit", "--class", "fast", "--", "ls"), 1, "class must be one of default (600 s)"),
        (
            ("submit", "--duration", "11m", "--", "ls"),
            1,
            "duration must be a number above 0 and at most 600 s",
        ),
        (("submit", "--duration", "0s", "--", "ls"), 1, "duration must be a number above 0"),
        (("submit", "--duration", "nan", "--", "ls"), 2, "--duration: 'nan' is not a duration"),
        (("submit", "--duration", "-1", "--", "ls"), 2, "--duration: '-1' is not a duration"),
        (
            ("submit", "-q", "render", "--class", "fast", "--duration", "3s", "--", "ls"),
            1,
            'duration cannot be sent together with "class"; the classes are fast (3 s), medium (10 s)',
        ),
        (("shorten", "nobody", "soon"), 2, "DURATION: 'soon' is not a duration"),
        (("shorten", "nobody", "0s"), 1, "seconds must be a number above 0 and at most 600 s"),
        (("shorten", "..", "3s"), 4, "queue 'default' has no job '..'"),
        (("submit", "--key", "\udcff", "--", "ls"), 1, "key must be Unicode text"),
        (("submit", "--as", "user:\udcff", "--", "ls"), 1, "submitter.id must be Unicode text"),
        (("submit", "--", "ls", "\udcff"), 1, "run.command.1 must be Unicode text"),
        (("pause", "--reason", "\udcff"), 1, "reason must be Unicode text"),
        (("show", "\udcff"), 1, "id must be Unicode text"),
        (("show", ""), 4, "queue 'default' has no job ''"),
        (("show", "."), 4, "queue 'default' has no job '.'"),
        (("show", ".."), 4, "queue 'default' has no job '..'"),
        (("rm", ""), 4, "queue 'default' has no job ''"),
        (("rm", ".."), 4, "queue 'default' has no job '..'"),
        (("cancel", "."), 4, "queue 'default' has no job '.'"),
        (("line", "-q", ".."), 4, "there is no queue '..'"),
        (("line", "-q", "\udcff"), 1, "queue must be Unicode text"),
        (("submit", "--prioritty", "5", "--", "ls"), 2, "No such option"),
        (("line", "-n", "0"), 2, "Invalid value"),
    ],
)
def test_what_goes_wrong_is_a_sentence_and_a_code(
    served: Terminal, words: tuple[str, ...], code: int, sentence: str
) -> None:
    result = served.types(*words)
    assert (result.exit_code, result.stdout) == (code, "")
    assert sentence in result.stderr
    assert "Traceback" not in result.stderr


def test_a_state_that_forbids_it_and_a_full_queue_have_codes(served: Terminal) -> None:
    job = served.gets("submit", "--immediate", "--", "ls")["id"]
    assert served.types("release", job).exit_code == 5
    for _ in range(2):
        served.gets("submit", "--", "ls")
    full = served.types("submit", "--", "ls")
    assert (full.exit_code, "max_waiting.per_submitter" in full.stderr) == (1, True)


def test_without_a_server_the_code_is_3(terminal: Terminal) -> None:
    unknown = terminal.types("line")
    assert (unknown.exit_code, "maitred up" in unknown.stderr) == (3, True)
    gone = terminal.types("line", "--server", "127.0.0.1:1")
    assert (gone.exit_code, gone.stderr) == (3, "maitred: No server answers at http://127.0.0.1:1.\n")


def test_the_environment_names_the_server(served: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAITRED_URL", (served.data / "address").read_text())
    elsewhere = Terminal(served.data / "elsewhere")
    assert elsewhere.gets("line")["total"] == 0


def test_help_tells_the_exit_codes(terminal: Terminal) -> None:
    told = terminal.runner.invoke(app, ["--help"])
    assert "5 the state of the job forbids it" in told.stdout
