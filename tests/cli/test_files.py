"""Files beside a program: given by name, renamed, from the input, and whole directories."""

from pathlib import Path

import pytest

from maitred.cli import given
from maitred.cli.app import app
from maitred.cli.given import files_beside
from maitred.errors import ConfigError
from tests.cli.conftest import Terminal


def test_a_directory_is_laid_there_with_all_that_is_in_it(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "deep").mkdir(parents=True)
    (source / "main.py").write_text("print(1)")
    (source / "deep" / "data").write_bytes(b"\xff")
    assert files_beside([str(source)]) == {
        "source/deep/data": {"base64": "/w=="},
        "source/main.py": {"text": "print(1)"},
    }
    assert list(files_beside([f"lab={source}"])) == ["lab/deep/data", "lab/main.py"]


def test_a_file_lies_there_under_another_name_if_one_is_said(tmp_path: Path) -> None:
    odd = tmp_path / "a=b.txt"
    odd.write_text("x")
    assert list(files_beside([str(odd)])) == ["a=b.txt"], "a file that is there is meant"
    assert files_beside([f"dir/c.txt={odd}"]) == {"dir/c.txt": {"text": "x"}}


@pytest.mark.parametrize(("option", "name"), [("-", "stdin"), ("numbers=-", "numbers")])
def test_the_input_is_a_file_too(served: Terminal, option: str, name: str) -> None:
    words = ["submit", "--data", str(served.data), "--json", "-f", option, "--", "wc"]
    answer = served.runner.invoke(app, words, input="1\n2\n")
    assert f'"files":["{name}"]' in answer.stdout


def test_what_cannot_be_laid_there_is_refused_before_anything_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_text("four")
    for wrong, said in (
        ([str(tmp_path / "no")], "cannot be read"),
        ([str(tmp_path / "a"), f"a={tmp_path / 'a'}"], "two files would lie there as 'a'"),
    ):
        with pytest.raises(ConfigError, match=said):
            files_beside(wrong)
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "gone").symlink_to(tmp_path / "nowhere")
    with pytest.raises(ConfigError, match="is no file that can be sent"):
        files_beside([str(tmp_path / "odd")])
    monkeypatch.setattr(given, "MOST_BYTES", 7)
    with pytest.raises(ConfigError, match="which no queue takes"):
        files_beside([str(tmp_path / "a"), f"b={tmp_path / 'a'}"])


def test_a_queue_says_itself_when_files_are_too_much_for_it(served: Terminal, tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"x" * (1 << 20))
    refused = served.types("submit", "-f", str(tmp_path / "large"), "--", "ls")
    assert (refused.exit_code, "1048576" in refused.stderr) == (1, True)
