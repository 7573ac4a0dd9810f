"""The HTTP face: routes over the desk, refusals as problems, and a server that listens on loopback."""

from maitred.http.app import create_app
from maitred.http.server import Server, own_hosts, take_port

__all__ = ["Server", "create_app", "own_hosts", "take_port"]
