"""The public names: what `maitred` exports is a promise, so a change of it is a decision."""

import tomllib
from pathlib import Path

import pytest

import maitred
from maitred import errors
from maitred.service.queue import Queue
from maitred.worker import current_job


def test_the_public_names_are_these() -> None:
    tree = {
        name
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, errors.MaitredError)
    }
    others = {
        "Accepted",
        "Fault",
        "Queue",
        "RunningJob",
        "StageJob",
        "Submitter",
        "__version__",
        "current_job",
        "fetch",
        "webhooks",
    }
    assert set(maitred.__all__) == tree | others
    assert all(hasattr(maitred, name) for name in maitred.__all__)
    assert set(maitred.__all__) <= set(dir(maitred))


def test_names_that_are_imported_when_first_named_are_the_real_ones() -> None:
    assert maitred.Queue is Queue
    assert maitred.current_job is current_job
    with pytest.raises(AttributeError, match="module 'maitred' has no attribute 'Kueue'"):
        _ = maitred.Kueue  # type: ignore[attr-defined]


def test_every_error_is_in_the_tree_that_its_module_draws() -> None:
    for name in maitred.__all__:
        if isinstance(getattr(maitred, name), type) and issubclass(getattr(maitred, name), Exception):
            assert name in (errors.__doc__ or ""), name


def test_the_version_is_the_packages() -> None:
    project = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["project"]
    assert maitred.__version__ == project["version"]
