"""What users load with `pytest_plugins = ["maitred.testing"]`; docs/testing.md tries that way."""

from maitred.testing import rehearse

__all__ = ["rehearse"]
