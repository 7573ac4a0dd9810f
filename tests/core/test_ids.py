"""A job's identity: the key and the response address, and nothing else."""

import re

from hypothesis import given
from hypothesis import strategies as st

from maitred.core.ids import job_id

texts = st.text(st.characters(codec="utf-8"), max_size=40)


@given(texts, texts, texts, texts)
def test_two_pairs_have_one_id_only_if_they_are_the_same(a: str, b: str, c: str, d: str) -> None:
    assert (job_id(a, b) == job_id(c, d)) == ((a, b) == (c, d))


@given(texts, texts)
def test_an_id_is_safe_in_a_path_and_on_a_command_line(key: str, url: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_.]{24}", job_id(key, url))


def test_no_address_and_an_empty_one_are_the_same() -> None:
    assert job_id("k") == job_id("k", None) == job_id("k", "")
