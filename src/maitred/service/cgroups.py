"""Groups of the kernel with limits of their own (cgroup v2), where this process may make some.

A group holds all processes of a program, whatever they do, counts what they use together, and can end them in
one step. Processes may be only at the leaves of the tree, so the worker moves into a leaf itself.
"""

import os
from pathlib import Path

_OURS = "maitred-worker"
_NEEDED = ("memory", "pids")


def find_cgroup(
    mounts: Path = Path("/proc/self/mountinfo"), own: Path = Path("/proc/self/cgroup")
) -> tuple[str, str]:
    """Give the directory where groups can be made, or why there is none."""
    try:
        mount = next(
            (
                Path(words[4])
                for line in mounts.read_text().splitlines()
                if " - cgroup2 " in line and (words := line.split())
            ),
            None,
        )
        path = next((line[3:] for line in own.read_text().splitlines() if line.startswith("0::")), None)
    except OSError as error:
        return "", f"cgroups cannot be read: {error}"
    if mount is None or path is None:
        return "", "cgroup v2 is not mounted"
    here = mount / path.strip("/")
    if here.name == _OURS:
        here = here.parent
    try:
        return _delegated(here)
    except OSError as error:
        return "", f"this process may not make groups in {here}: {error.strerror}"


def _delegated(here: Path) -> tuple[str, str]:
    have = (here / "cgroup.controllers").read_text().split()
    if lacking := [name for name in _NEEDED if name not in have]:
        return "", f"{here} has no controller for {' and '.join(lacking)}"
    if not os.access(here / "cgroup.subtree_control", os.W_OK):
        return "", f"{here} belongs to somebody else"
    on = (here / "cgroup.subtree_control").read_text().split()
    if any(name not in on for name in _NEEDED):
        leaf = here / _OURS
        leaf.mkdir(exist_ok=True)
        for pid in (here / "cgroup.procs").read_text().split():
            (leaf / "cgroup.procs").write_text(pid)
        (here / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in _NEEDED))
    return str(here), ""
