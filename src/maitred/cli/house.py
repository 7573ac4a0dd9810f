"""The house while it is open: a store, a server and workers, started in this order and stopped in reverse.

A signal (Ctrl-C or SIGTERM) closes it: workers take no more and finish or give back what they run, the
server answers what it was asked, the store writes its last. Then the command ends with 0. One that comes
before the house is open, while a store does not answer or reads its data back, is heard at once.
"""

import asyncio
import contextlib
import shutil
import socket
import sys
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import typer
import uvloop

from maitred import config
from maitred.cli.address import noted
from maitred.cli.handlers import load_app
from maitred.cli.logs import write_logs
from maitred.cli.minding import kept_running
from maitred.cli.stopping import asked_to_stop, stoppable, unless
from maitred.config.values import enforced_names
from maitred.core.settings import Settings
from maitred.errors import ConfigError, SettingsForbidden, UnknownQueue
from maitred.http import Server, create_app, own_hosts, take_port
from maitred.http.server import address
from maitred.service.desk import Desk
from maitred.service.foresights import Foresights
from maitred.service.handlers import Handlers
from maitred.service.host import Host, refuse_less, this_host
from maitred.service.whereabouts import embedded_url
from maitred.store.connect import connect
from maitred.store.port import Status, Store, Stores
from maitred.store.valkey.embedded import Embedded
from maitred.worker import Worker

NEXT = """\
Try, in another terminal:
  {maitred} submit -- echo hello    a place in line for a program
  {maitred} line                    who waits, and why
  {maitred} watch ID                its place, its run, and what it printed
  {maitred} top                     the whole queue at a glance
API: {address}/docs   Stop: Ctrl-C"""


def up(
    file: Path | None,
    data: Path,
    *,
    host: str,
    port: int,
    slots: int,
    app: str | None,
    require: str | None = None,
) -> None:
    """Run store, server and workers until a signal comes."""
    with stoppable(), contextlib.ExitStack() as house:
        settings = config.load(file)
        handlers = load_app(app)
        premises = _premises(settings, require) if slots else None
        taken = house.enter_context(take_port(host, port))
        embedded = None
        if settings.store.url is None:
            embedded = house.enter_context(Embedded(data, durability=settings.store.durability))
        house.enter_context(noted(data, address(taken)))
        url = settings.store.url or (embedded.url if embedded else "")
        serving = _serve(url, settings, taken, handlers, slots=slots, premises=premises)
        _open(kept_running(embedded, serving) if embedded else serving)


def serve(file: Path | None, data: Path, *, store: str | None, host: str, port: int) -> None:
    """Run a server until a signal comes."""
    with stoppable(), take_port(host, port) as taken:
        settings = config.load(file)
        url = store or settings.store.url or embedded_url(data)
        with noted(data, address(taken)):
            _open(_serve(url, settings, taken, {}, slots=0, premises=None))


def work(
    file: Path | None,
    data: Path,
    *,
    store: str | None,
    app: str | None,
    slots: int,
    queues: Sequence[str],
    require: str | None = None,
) -> None:
    """Run workers until a signal comes."""
    with stoppable():
        handlers = load_app(app)
        settings = config.load(file)
        premises = _premises(settings, require)
        url = store or settings.store.url or embedded_url(data)
        _open(_work(url, handlers, slots, queues, premises))


class Premises(NamedTuple):
    """What workers of this process stand on: the host, and what more of it programs can see."""

    host: Host
    visible: tuple[str, ...]


def _premises(settings: config.Config, require: str | None) -> Premises:
    """Look at the host; `ConfigError` if it gives less than is required."""
    worker = settings.worker
    host = this_host() if worker.isolate else this_host().plain()
    refuse_less(worker.require if require is None else _required(require), host)
    return Premises(host, worker.visible)


def _required(text: str) -> tuple[str, ...]:
    try:
        return enforced_names(text)
    except ValueError as error:
        raise ConfigError(f"--require: {error}.") from None


def _say_what_is_enforced(premises: Premises) -> None:
    typer.echo(f"Commands are kept by: {', '.join(premises.host.enforces())}")


def _open(house: Coroutine[None, None, None]) -> None:
    """Run the house on a fast loop; what it logs goes to the error output, apart from what it answers."""
    write_logs(sys.stderr)
    uvloop.run(house)


async def _serve(
    url: str,
    settings: config.Config,
    taken: socket.socket,
    handlers: Mapping[str, Handlers],
    *,
    slots: int,
    premises: Premises | None,
) -> None:
    asked = asked_to_stop()
    stores = connect(url)
    try:
        workers = await unless(asked, _prepare(stores, settings, handlers, slots, premises))

        async def taking() -> bool:
            return all([await _takes(stores, name, worker) for name, worker in workers.items()])

        foresights = Foresights(stores)
        app = create_app(Desk(stores, foresights=foresights), hosts=own_hosts(taken), taking=taking)
        server = Server(app, closing=foresights.close)
        serving = asyncio.create_task(server.serve([taken]))
        await _until(server.up, serving)
        typer.echo(f"Maitred is ready at {address(taken)}")
        if premises:
            _say_what_is_enforced(premises)
        typer.echo(NEXT.format(address=address(taken), maitred=_how_to_type_it()))
        try:
            await _run(asked, list(workers.values()), serving)
        finally:
            server.stop()
            await serving
    finally:
        await stores.close()


async def _work(
    url: str, handlers: Mapping[str, Handlers], slots: int, queues: Sequence[str], premises: Premises
) -> None:
    asked = asked_to_stop()
    stores = connect(url)
    try:
        workers = await unless(asked, _workers(stores, handlers, slots, queues or list(handlers), premises))
        typer.echo(f"Working with {slots} slots in each of: {', '.join(workers)}")
        _say_what_is_enforced(premises)
        await _run(asked, list(workers.values()))
    finally:
        await stores.close()


async def _prepare(
    stores: Stores,
    settings: config.Config,
    handlers: Mapping[str, Handlers],
    slots: int,
    premises: Premises | None,
) -> dict[str, Worker]:
    """Write the queues' settings into the store, and make a worker for each queue if there are slots."""
    for name, queue in settings.queues.items():
        await _configure(stores.queue(name), queue.settings())
    if premises is None:
        return {}
    return await _workers(stores, handlers, slots, list(settings.queues), premises)


async def _configure(store: Store, settings: Settings) -> None:
    """Write a queue's settings; `SettingsForbidden` says which of them cannot change, and why."""
    try:
        await store.configure(settings)
    except SettingsForbidden:
        raise SettingsForbidden(_forbidden(store.queue, await store.status(), settings)) from None


def _forbidden(queue: str, now: Status, settings: Settings) -> str:
    """Say which of the settings that are fixed while there are jobs would change, a line for each."""
    waiting = "1 job waits" if now.waiting == 1 else f"{now.waiting} jobs wait"
    old, lines = now.settings, []
    if old.order != settings.order:
        lines.append(f"order: cannot change from {old.order} to {settings.order} while {waiting}")
    if old.floor_plan != settings.floor_plan:
        lines.append("classes: their names and caps, and elastic, cannot change while jobs wait or run")
    if old.stages != settings.stages:
        change = f"from {', '.join(old.stages)} to {', '.join(settings.stages)}"
        lines.append(f"stages: cannot change {change} while there are jobs that have not ended")
    return "\n".join(f"queues.{queue}.{line}." for line in lines) or str(SettingsForbidden())


async def _workers(
    stores: Stores,
    handlers: Mapping[str, Handlers],
    slots: int,
    queues: Sequence[str],
    premises: Premises,
) -> dict[str, Worker]:
    """Make a worker for each queue, of all if none is named.

    `UnknownQueue` if nobody configured one that is named, or one that an app has handlers for.
    """
    known = await stores.names()
    for name in (*queues, *handlers):
        if name not in known:
            raise UnknownQueue(name)
    return {
        name: Worker(
            stores.queue(name),
            handlers.get(name, Handlers()),
            slots,
            host=premises.host,
            visible=premises.visible,
        )
        for name in queues or known
    }


async def _takes(stores: Stores, queue: str, worker: Worker) -> bool:
    status = await stores.queue(queue).status()
    return any(known.name == worker.name and not known.draining for known in status.workers)


async def _run(asked: asyncio.Event, workers: Sequence[Worker], *others: asyncio.Task[None]) -> None:
    """Run workers until a signal comes, or anything ends by itself; then let the workers end in order."""
    stopped = asyncio.create_task(asked.wait())
    working = [asyncio.create_task(worker.run()) for worker in workers]
    try:
        await asyncio.wait([stopped, *working, *others], return_when=asyncio.FIRST_COMPLETED)
    finally:
        for worker in workers:
            worker.stop()
        # Each one ends in order, also when another has failed.
        ends = await asyncio.gather(*working, return_exceptions=True)
        stopped.cancel()
    for end in ends:
        if isinstance(end, BaseException):
            raise end


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
