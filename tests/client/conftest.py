"""A real server for the client."""

from tests.http.conftest import house

__all__ = ["house"]
