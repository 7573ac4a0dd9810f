"""A reader at a terminal: types the commands of a page one after the other, beside a real `maitred up`.

In a `console` block a line with `$ ` is typed, with the lines after it for as long as they end with a
backslash; then comes what must be seen. `…` stands for anything, and alone on a line for any lines. The pages
use port 7500; here it is a free one. A command that only looks is typed again until it shows what the page
says, since jobs take a moment.
"""

import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from tests.docs.pages import ROOT, Block

PATIENCE = 20.0
USUAL = "127.0.0.1:7500"
_STARTS = re.compile(r'(?:make run(?: ARGS="(?P<args>[^"]*)")?|maitred up(?P<words>.*))')
_ONLY_LOOKS = re.compile(r"maitred (show|line)\b|curl -s http|sort ")


@dataclass(frozen=True)
class Step:
    """One command and what must be seen after it; where nothing is shown, anything may be."""

    command: str
    shown: str


def steps(block: Block) -> list[Step]:
    """Read the commands of a console block."""
    found: list[Step] = []
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        typed, _, shown = re.sub(r"\s*\\\n\s*", " ", part).partition("\n")
        found.append(Step(typed.strip(), shown.strip("\n")))
    return found


def fits(shown: str, seen: str) -> bool:
    """Tell whether a command printed what the page shows."""
    pattern = r"\n".join(
        r"(?:.*\n)*?.*" if line.strip() == "…" else ".*?".join(map(re.escape, line.rstrip().split("…")))
        for line in shown.split("\n")
    )
    return re.fullmatch(pattern, "\n".join(line.rstrip() for line in seen.rstrip().split("\n"))) is not None


class Session:
    """One directory, one terminal, and one house at a time."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._house: subprocess.Popen[str] | None = None
        self._address = ""
        programs = home / "bin"
        programs.mkdir()
        for name, words in (("maitred", "-m maitred"), ("python", "")):
            (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n')
            (programs / name).chmod(0o755)
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("MAITRED_")},
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT / "src"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "COLUMNS": "100",
            # Which other plugins are installed here is no matter of the page's.
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTEST_PLUGINS": "pytest_asyncio.plugin",
        }

    def read(self, block: Block) -> None:
        """Do what a block says: save a file, or type commands and see what they show."""
        if block.file:
            (self.home / block.file).write_text(block.text)
        if block.language == "console":
            for step in steps(block):
                self._take(block, step)

    def _take(self, block: Block, step: Step) -> None:
        patience = time.monotonic() + PATIENCE
        while True:
            code, seen = self.types(step.command)
            refused = step.shown.startswith("maitred: ")
            right = (not step.shown or fits(step.shown, seen)) and (code != 0) == refused
            if right or not _ONLY_LOOKS.match(step.command) or time.monotonic() > patience:
                break
        said = f"$ {step.command}\nended with {code} and showed\n{seen}\nbut the page shows\n{step.shown}"
        assert right, f"{block}\n{said}"

    def types(self, command: str) -> tuple[int, str]:
        """Type a command; give how it ended and what it showed."""
        if starts := _STARTS.fullmatch(command):
            return 0, self._opens(((starts["args"] or "") + (starts["words"] or "")).split())
        ended = subprocess.run(
            ["bash", "-c", command.replace(USUAL, self._address)],
            cwd=self.home,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        return ended.returncode, self._as_written(ended.stdout)

    def _opens(self, words: list[str]) -> str:
        self.closes()
        with (self.home / "log").open("a") as log:
            self._house = subprocess.Popen(
                ["maitred", "up", "--port", "0", *words],
                executable=str(self.home / "bin" / "maitred"),
                cwd=self.home,
                env=self._environment,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self._house.stdout
        seen = ""
        for line in self._house.stdout:
            seen += line
            if "Ctrl-C" in line:
                break
        ready = re.search(r"ready at http://(\S+)", seen)
        assert ready, (seen, (self.home / "log").read_text())
        self._address = ready[1]
        return self._as_written(seen)

    def _as_written(self, seen: str) -> str:
        return seen.replace(self._address, USUAL) if self._address else seen

    def closes(self) -> None:
        """Stop the house in order, as Ctrl-C does."""
        house, self._house = self._house, None
        if house is None:
            return
        house.send_signal(signal.SIGINT)
        try:
            house.communicate(timeout=PATIENCE)
        finally:
            if house.poll() is None:
                house.kill()
                house.communicate()
        assert house.returncode == 0, (self.home / "log").read_text()
