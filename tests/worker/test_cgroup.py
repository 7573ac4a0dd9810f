"""Groups of the kernel: found where they are delegated, written as the kernel reads them.

Not every host that tests run on delegates groups; what is written is tried on a directory then.
"""

from pathlib import Path

import pytest

from maitred.core.settings import Settings
from maitred.service.cgroups import find_cgroup
from maitred.worker.cgroup import Group
from maitred.worker.jail import Limits

LIMITS = Limits.of(Settings())


def tree(tmp_path: Path, controllers: str, on: str = "") -> tuple[Path, Path, Path]:
    """Make what a host with one group shows: its mounts, which group is ours, and the group."""
    here = tmp_path / "sys" / "scope"
    here.mkdir(parents=True)
    (here / "cgroup.controllers").write_text(controllers)
    (here / "cgroup.subtree_control").write_text(on)
    (here / "cgroup.procs").write_text("")
    mounts, own = tmp_path / "mountinfo", tmp_path / "cgroup"
    mounts.write_text(f"30 25 0:26 / {tmp_path / 'sys'} rw - cgroup2 cgroup2 rw\n")
    own.write_text("0::/scope\n")
    return mounts, own, here


def test_a_group_that_is_ours_is_found_and_prepared(tmp_path: Path) -> None:
    mounts, own, here = tree(tmp_path, "cpu memory pids")
    assert find_cgroup(mounts, own) == (str(here), "")
    assert (here / "cgroup.subtree_control").read_text() == "+memory +pids"
    assert (here / "maitred-worker").is_dir()
    own.write_text("0::/scope/maitred-worker\n")
    (here / "cgroup.subtree_control").write_text("memory pids")
    assert find_cgroup(mounts, own) == (str(here), ""), "another worker of the same scope"


def test_why_there_is_none_is_told(tmp_path: Path) -> None:
    mounts, own, here = tree(tmp_path, "cpu")
    assert find_cgroup(mounts, own) == ("", f"{here} has no controller for memory and pids")
    mounts.write_text("")
    assert find_cgroup(mounts, own) == ("", "cgroup v2 is not mounted")
    assert find_cgroup(tmp_path / "none", own)[0] == ""


def test_limits_are_written_and_what_was_hit_is_read(tmp_path: Path) -> None:
    group = Group(tmp_path, LIMITS)
    assert (group.path / "memory.max").read_text() == str(LIMITS.memory)
    assert (group.path / "pids.max").read_text() == str(LIMITS.processes)
    assert group.hit() is None
    (group.path / "pids.events").write_text("max 3\n")
    assert group.hit() == "processes"
    (group.path / "memory.events").write_text("low 0\nhigh 0\nmax 9\noom 1\noom_kill 1\n")
    assert group.hit() == "memory"
    (group.path / "cgroup.events").write_text("populated 1\nfrozen 0\n")
    assert not group.empty()
    group.kill()
    assert (group.path / "cgroup.kill").read_text() == "1"


@pytest.mark.skipif(not Path("/sys/fs/cgroup").exists(), reason="no cgroups here")
def test_this_hosts_answer_is_a_directory_or_a_reason() -> None:
    found, why = find_cgroup()
    assert bool(found) != bool(why)
