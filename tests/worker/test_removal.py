"""Whatever programs leave in a directory, it is removed."""

import os
from pathlib import Path

from maitred.worker.removal import remove


def test_what_is_nested_beyond_the_longest_path_is_removed(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    here = os.open(place, os.O_RDONLY)
    for _ in range(300):
        os.mkdir("d" * 100, dir_fd=here)
        there = os.open("d" * 100, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = there
    os.close(here)
    remove(place)
    assert not place.exists()


def test_links_are_removed_and_not_followed(tmp_path: Path) -> None:
    kept, place = tmp_path / "kept", tmp_path / "place"
    kept.mkdir()
    (kept / "file").touch()
    (place / "below").mkdir(parents=True)
    (place / "link").symlink_to(kept)
    (place / "below" / "link").symlink_to(kept)
    remove(place)
    assert not place.exists()
    assert (kept / "file").exists()
    remove(place)
