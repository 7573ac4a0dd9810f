"""What this host can give, told line by line: the sandbox, the store, and whether the settings fit."""

import asyncio
from pathlib import Path
from typing import NamedTuple

import typer

from maitred import config
from maitred.cli.opening import AtStore
from maitred.cli.printing import print_json
from maitred.core.settings import Settings
from maitred.errors import MaitredError
from maitred.service.host import Host, findings, this_host
from maitred.service.whereabouts import embedded_url
from maitred.store.connect import connect


class Line(NamedTuple):
    """One thing that was looked at; `needed` tells that lacking it is a failure."""

    about: str
    ok: bool
    words: str
    needed: bool = False


def examine(given: AtStore) -> int:
    """Look at everything and print it; 1 if something is lacking that is needed, else 0."""
    settings = config.load(given.config)
    host = this_host() if settings.worker.isolate else this_host().plain()
    written = given.config is not None or Path(config.FILE).exists()
    lines = [
        *_sandbox(host, settings),
        *asyncio.run(_store(given.data, given.store, settings, written=written)),
    ]
    failed = any(line.needed and not line.ok for line in lines)
    if given.as_json:
        found = [line._asdict() for line in lines]
        print_json({"ok": not failed, "enforces": host.enforces(), "found": found})
    else:
        for line in lines:
            sign = "ok" if line.ok else "LACKING" if line.needed else "lacking"
            typer.echo(f"{sign:8}{line.about:12} {line.words}")
    return 1 if failed else 0


def _sandbox(host: Host, settings: config.Config) -> list[Line]:
    required = settings.worker.require
    return [Line(name, given, words, needed=name in required) for name, given, words in findings(host)]


async def _store(data: Path, store: str | None, settings: config.Config, *, written: bool) -> list[Line]:
    """Ask the store, if there is one, and compare the queues in it with the settings, if they are written."""
    named = store or settings.store.url
    try:
        url = named or embedded_url(data)
    except MaitredError as error:
        return [Line("store", ok=False, words=str(error))]
    stores = connect(url)
    try:
        await stores.ping()
        known = await stores.names()
        lines = [Line("store", ok=True, words=f"it answers, with {_queues(known)}")]
        for name, queue in settings.queues.items():
            if name in known:
                kept = (await stores.queue(name).status()).settings
                lines.append(_compared(name, kept, queue.settings()))
            elif written:
                words = f"the store has no queue {name!r} yet; `maitred up` or `serve` makes it"
                lines.append(Line(f"queue {name}", ok=False, words=words))
    except MaitredError as error:
        return [Line("store", ok=False, words=str(error), needed=True)]
    finally:
        await stores.close()
    return lines


def _queues(known: list[str]) -> str:
    return f"{len(known)} queues: {', '.join(known)}" if known else "no queue"


def _compared(name: str, kept: Settings, written: Settings) -> Line:
    differ = [field for field in Settings.__slots__ if getattr(kept, field) != getattr(written, field)]
    if not differ:
        return Line(f"queue {name}", ok=True, words="its settings in the store are those of the file")
    words = (
        f"the store has other settings than the file: {', '.join(differ)}; `maitred serve` writes them anew"
    )
    return Line(f"queue {name}", ok=False, words=words)
