"""Beside other programs: a shell completes what is typed, and whoever reads may leave."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import maitred
from maitred.cli.app import app
from tests.cli.conftest import Terminal

ENVIRONMENT = {"PYTHONPATH": str(Path(maitred.__file__).parents[1]), "PATH": os.environ["PATH"]}

# Asks as bash does when the tab key is pressed after these words.
TAB = """
{script}
tab() {{
    COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
    _maitred_completion maitred
    echo "${{COMPREPLY[*]}}"
}}
tab maitred re
tab maitred line --data "{data}" --queue re
"""


def test_bash_completes_commands_and_the_names_of_queues(served: Terminal, tmp_path: Path) -> None:
    program = tmp_path / "maitred"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m maitred "$@"\n')
    program.chmod(0o700)
    script = served.runner.invoke(app, ["completion", "bash"]).stdout
    assert "complete -o default -F _maitred_completion maitred" in script
    typed = TAB.format(script=script, data=served.data)
    path = {"PATH": f"{tmp_path}:{ENVIRONMENT['PATH']}"}
    ended = subprocess.run(
        ["bash", "-c", typed], env=ENVIRONMENT | path, capture_output=True, text=True, check=True, timeout=60
    )
    commands, queues = ended.stdout.splitlines()
    assert set(commands.split()) == {"release", "retry", "reconcile", "resume"}
    assert queues == "render"


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_are_taught_too(terminal: Terminal, shell: str) -> None:
    script = terminal.runner.invoke(app, ["completion", shell]).stdout
    assert f"_MAITRED_COMPLETE=complete_{shell}" in script


@pytest.mark.parametrize("words", [("keys", "list"), ("line",)], ids=" ".join)
def test_a_reader_that_has_left_is_no_trouble(served: Terminal, words: tuple[str, ...]) -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    ended = subprocess.run(
        [sys.executable, "-m", "maitred", *words, "--data", str(served.data)],
        env=ENVIRONMENT,
        stdout=theirs,
        stderr=subprocess.PIPE,
        check=False,
        timeout=60,
    )
    os.close(theirs)
    assert (ended.returncode, ended.stderr) == (141, b"")
