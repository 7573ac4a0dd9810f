"""The virtual environment of `make`: it needs no more than Python and pip, as Debian has them."""

import ensurepip
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "tools" / "venv.sh"
WHEELS = Path(ensurepip.__file__).with_name("_bundled")


@dataclass
class Machine:
    """A machine with one Python, some of whose modules are missing."""

    home: Path

    def lacks(self, *modules: str) -> None:
        for module in modules:
            (self.home / f"{module}.py").write_text(f"raise ImportError({module!r})\n")

    def makes(self) -> subprocess.CompletedProcess[str]:
        """Run the script, with the packages that it may install from a directory."""
        (self.home / "python3.11").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        (self.home / "python3.11").chmod(0o755)
        environment = {
            "PATH": f"{self.home}:{os.defpath}",
            "PYTHONPATH": str(self.home),
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(WHEELS),
        }
        return subprocess.run(
            [SCRIPT, self.home / "made"], env=environment, capture_output=True, text=True, check=False
        )

    def has_pip(self) -> bool:
        made = self.home / "made" / "bin" / "python"
        return (
            subprocess.run([made, "-m", "pip", "--version"], capture_output=True, check=False).returncode == 0
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_with_ensurepip_the_environment_has_pip(machine: Machine) -> None:
    made = machine.makes()
    assert (made.returncode, made.stderr) == (0, "")
    assert machine.has_pip()


@pytest.mark.skipif(not WHEELS.is_dir(), reason="this Python has no wheel of pip to install from")
def test_without_ensurepip_the_machines_pip_is_enough(machine: Machine) -> None:
    machine.lacks("ensurepip")
    made = machine.makes()
    assert made.returncode == 0, made.stderr
    assert machine.has_pip()


def test_with_neither_it_says_what_is_missing_and_leaves_nothing_half_done(machine: Machine) -> None:
    machine.lacks("ensurepip", "pip")
    made = machine.makes()
    assert made.returncode == 1
    assert made.stderr.splitlines()[-1].startswith("Maitred needs pip 22.3 or newer beside Python;")
    assert not (machine.home / "made" / "bin" / "python").exists()
