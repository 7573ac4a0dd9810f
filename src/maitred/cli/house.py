"""The house while it is open: a store, a server and workers, started in this order and stopped in reverse.

A signal (Ctrl-C or SIGTERM) closes it: workers take no more and finish or give back what they run, the
server answers what it was asked, the store writes its last. Then the command ends with 0. A second one ends
running work at once. One that comes before the house is open, while a store does not answer or reads its data
back, is heard at once. SIGHUP reads the settings again.
"""

import asyncio
import contextlib
import shutil
import socket
import sys
from collections.abc import Coroutine, Sequence
from pathlib import Path

import structlog
import typer
import uvloop

from maitred import config
from maitred.cli import options
from maitred.cli.address import noted
from maitred.cli.crew import Crew, Making
from maitred.cli.handlers import load_app
from maitred.cli.logs import write_logs
from maitred.cli.minding import kept_running
from maitred.cli.opening import Logging, Serve, Up, Work
from maitred.cli.premises import Premises, look_at
from maitred.cli.printing import print_json
from maitred.cli.settling import settle, settle_again
from maitred.cli.stopping import Asked, heeding, stoppable, unless
from maitred.cli.tracing import exporting
from maitred.errors import MaitredError
from maitred.http import Server, create_app, own_hosts, take_port
from maitred.http.probe import Probe
from maitred.http.server import address, must_be_loopback
from maitred.service.desk import Desk
from maitred.service.foresights import Foresights
from maitred.service.keyring import Keys
from maitred.service.metrics import Metrics
from maitred.service.whereabouts import embedded_url
from maitred.store.connect import connect
from maitred.store.port import Stores
from maitred.store.valkey.embedded import Embedded

_log = structlog.get_logger()

NEXT = """\
Try, in another terminal:
  {maitred} submit -- echo hello    a place in line for a program
  {maitred} line                    who waits, and why
  {maitred} watch ID                its place, its run, and what it printed
  {maitred} top                     the whole queue at a glance
API: {address}/docs   Stop: Ctrl-C"""


def up(given: Up) -> None:
    """Run store, server and workers until a signal comes."""
    with stoppable(), contextlib.ExitStack() as house:
        settings = config.load(given.config)
        handlers = load_app(given.app)
        premises = look_at(settings, given.require) if given.slots else None
        taken = house.enter_context(take_port(given.host, given.port, anywhere=True))
        embedded = None
        if settings.store.url is None:
            embedded = house.enter_context(Embedded(given.data, durability=settings.store.durability))
        house.enter_context(noted(given.data, address(taken)))
        url = settings.store.url or (embedded.url if embedded else "")
        making = Making(handlers, given.slots, premises)
        serving = _serve(url, given, settings, taken, making)
        _open(kept_running(embedded, serving) if embedded else serving, given, settings)


def serve(given: Serve) -> None:
    """Run a server until a signal comes."""
    with stoppable(), take_port(given.host, given.port, anywhere=True) as taken:
        settings = config.load(given.config)
        url = given.store or settings.store.url or embedded_url(given.data)
        with noted(given.data, address(taken)):
            _open(_serve(url, given, settings, taken, Making({}, 0, None)), given, settings)


def work(given: Work) -> None:
    """Run workers until a signal comes."""
    with stoppable(), contextlib.ExitStack() as house:
        handlers = load_app(given.app)
        settings = config.load(given.config)
        premises = look_at(settings, given.require)
        url = given.store or settings.store.url or embedded_url(given.data)
        health = None
        if given.health_port is not None:
            health = house.enter_context(take_port(options.DEFAULT_HOST, given.health_port))
            if not given.as_json:
                typer.echo(f"Health at {address(health)}/readyz")
        making = Making(handlers, given.slots, premises)
        working = _work(url, making, given.queue or list(handlers), health, as_json=given.as_json)
        _open(working, given, settings)


def _open(house: Coroutine[None, None, None], given: Logging, settings: config.Config) -> None:
    """Run the house on a fast loop; what it logs goes to the error output, apart from what it answers."""
    write_logs(sys.stderr, given.log_format or settings.log.format)
    with contextlib.closing(house), exporting():
        uvloop.run(house)


async def _serve(
    url: str, given: Logging, settings: config.Config, taken: socket.socket, making: Making
) -> None:
    asked = Asked()
    stores = connect(url)
    metrics = Metrics()
    crew = Crew(stores, making, metrics)
    try:
        await unless(asked.to_stop, _prepare(stores, settings, crew, taken))
        foresights = Foresights(stores)
        desk = Desk(stores, foresights=foresights, rate=settings.server.rate)
        app = create_app(desk, hosts=own_hosts(taken), workers=crew.health, metrics=metrics)
        server = Server(app, closing=foresights.close)
        serving = asyncio.create_task(server.serve([taken]))
        await _until(server.up, serving)
        _tell_ready(address(taken), making.premises, as_json=given.as_json)

        async def reload() -> None:
            nonlocal settings
            settings = await settle_again(stores, given.config, settings)
            _greet(crew.hire(settings.queues))
            crew.look_again()

        async with heeding(asked, reload, crew.hurry, server.hurry):
            try:
                await _run(asked, crew, serving)
            finally:
                server.stop()
                await serving
    finally:
        await stores.close()


async def _prepare(stores: Stores, settings: config.Config, crew: Crew, taken: socket.socket) -> None:
    """Write the queues' settings into the store, and gather a worker for each queue if there are slots.

    Raises `ConfigError` if others could reach the server, and nobody would need a key.
    """
    if not await Keys(stores.keyring).any_made():
        must_be_loopback(taken.getsockname()[0])
    await settle(stores, settings)
    if crew.making.slots:
        await crew.gather(settings.queues)


async def _work(
    url: str, making: Making, named: Sequence[str], health: socket.socket | None, *, as_json: bool
) -> None:
    asked = Asked()
    stores = connect(url)
    metrics = Metrics()
    stores.on_call(metrics.calls.note)
    crew = Crew(stores, making, metrics)

    async def reload() -> None:
        try:
            _greet(crew.hire(named or await stores.names()))
        except MaitredError as error:
            _log.error("settings not reloaded; the old ones stay", error=str(error))
        crew.look_again()
        _log.info("settings are read again from the store; --app and --slots need a new start")

    try:
        probe = Probe(health, crew.health, metrics.exposition) if health else contextlib.nullcontext()
        with probe:
            await unless(asked.to_stop, crew.gather(named))
            if as_json:
                document = {"working": crew.queues, "slots": making.slots}
                print_json(document | {"health": health and address(health), **_enforced(making.premises)})
            else:
                typer.echo(str(making.premises))
                typer.echo(f"Working with {making.slots} slots in each of: {', '.join(crew.queues)}")
            async with heeding(asked, reload, crew.hurry):
                await _run(asked, crew)
    finally:
        await stores.close()


def _tell_ready(own: str, premises: Premises | None, *, as_json: bool) -> None:
    """Tell that the server can be asked, and where."""
    if as_json:
        print_json({"ready": own, **_enforced(premises)})
        return
    typer.echo(f"Maitred is ready at {own}")
    if premises:
        typer.echo(str(premises))
    typer.echo(NEXT.format(address=own, maitred=_how_to_type_it()))


def _enforced(premises: Premises | None) -> dict[str, list[str] | None]:
    return {"enforces": list(premises.host.enforces()) if premises else None}


def _greet(queues: Sequence[str]) -> None:
    for name in queues:
        _log.info("a worker was added", queue=name)


async def _run(asked: Asked, crew: Crew, *others: asyncio.Task[None]) -> None:
    """Run workers until a signal comes, or anything ends by itself; then let the workers end in order."""
    waits = [asyncio.create_task(event.wait()) for event in (asked.to_stop, crew.ended)]
    crew.work()
    try:
        await asyncio.wait([*waits, *others], return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
        await crew.close()


def _how_to_type_it() -> str:
    """Give what runs this program in another terminal: `make run` starts it from a place not on the PATH."""
    program = Path(sys.argv[0])
    if shutil.which("maitred"):
        return "maitred"
    return str(program) if program.name == "maitred" else f"{sys.executable} -m maitred"


async def _until(event: asyncio.Event, task: asyncio.Task[None]) -> None:
    """Wait for an event; if the task that should bring it ends first, raise what it raises."""
    waiting = asyncio.create_task(event.wait())
    await asyncio.wait([waiting, task], return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if task.done():
        await task
