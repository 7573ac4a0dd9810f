"""Serving an app to the client of the harness: what both servers that are compared have in common."""

import asyncio
import socket

from starlette.types import ASGIApp

from benchmarks.programs.desk import Desk
from maitred.http import Server


async def serve(app: ASGIApp, taken: socket.socket, desk: Desk) -> None:
    """Serve on a socket, and say on which port; the harness ends the program."""
    server = Server(app)
    serving = asyncio.create_task(server.serve([taken]))
    await server.up.wait()
    desk.say(ready=True, port=taken.getsockname()[1])
    await serving
