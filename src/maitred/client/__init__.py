"""A thin client of the HTTP API: it knows the wire types and the errors, and nothing of stores or rules."""

from maitred.client.client import Client
from maitred.client.problems import error_of
from maitred.client.sync import SyncClient

__all__ = ["Client", "SyncClient", "error_of"]
