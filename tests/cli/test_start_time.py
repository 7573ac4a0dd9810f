"""The commands that ask do not wait for parts that only a server or a worker needs."""

import subprocess
import sys
from pathlib import Path

import pytest

import maitred

NOT_NEEDED = (
    *("fastapi", "starlette", "uvicorn", "uvloop", "redis", "hiredis", "structlog", "pydantic_settings"),
    *("maitred.config", "maitred.core", "maitred.http", "maitred.service", "maitred.store", "maitred.worker"),
)
# What is imported is told at the end, whatever the command itself thought of the missing server.
TYPED = """
import sys
from maitred.cli.app import app
try:
    app(sys.argv[1:])
except SystemExit as end:
    assert end.code == 3, end.code
print(*sorted(sys.modules))
"""


@pytest.mark.parametrize(
    "words",
    [
        ("show", "x"),
        ("line",),
        ("submit", "--", "ls"),
        ("submit", "--handler", "f"),
        ("watch", "x"),
        ("top",),
        ("shell",),
    ],
    ids=" ".join,
)
def test_a_command_that_asks_imports_no_server_and_no_store(words: tuple[str, ...], tmp_path: Path) -> None:
    command, *rest = words
    ended = subprocess.run(
        [sys.executable, "-c", TYPED, command, "--server", "127.0.0.1:1", *rest],
        cwd=tmp_path,
        env={"PYTHONPATH": str(Path(maitred.__file__).parents[1]), "USER": "ada"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert set(ended.stdout.split()).isdisjoint(NOT_NEEDED)
