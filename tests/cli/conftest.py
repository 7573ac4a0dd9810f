"""A server in a thread for the commands that ask, and a place to type them."""

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from maitred.cli.app import app
from maitred.core.settings import Settings
from maitred.http import Server, create_app, own_hosts, take_port
from maitred.http.server import address
from maitred.service.desk import Desk
from maitred.store.memory import MemoryStores
from tests.cli.house import APP, CONFIG, House
from tests.http.floor import THREE


@dataclass
class Terminal:
    """Where commands are typed, on the data directory of a server."""

    data: Path
    runner: CliRunner = field(default_factory=CliRunner)

    def types(self, *words: str) -> Result:
        """Run a command; the options come before what stands after a `--`."""
        end = words.index("--") if "--" in words else len(words)
        return self.runner.invoke(app, [*words[:end], "--data", str(self.data), *words[end:]])

    def tells(self, *words: str) -> str:
        """Run a command; give what it printed on one line, with one space where there were many."""
        return " ".join(self.types(*words).stdout.split())

    def gets(self, *words: str) -> dict[str, Any]:
        """Run a command with --json; give what it printed."""
        end = words.index("--") if "--" in words else len(words)
        result = self.types(*words[:end], "--json", *words[end:])
        assert result.exit_code == 0, result.output
        document: dict[str, Any] = json.loads(result.stdout)
        return document


@pytest.fixture
def terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    for name in ("MAITRED_URL", "MAITRED_QUEUE", "MAITRED_KEY", "MAITRED_KEY_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    return Terminal(tmp_path / "data")


async def _nothing(stores: MemoryStores) -> None:
    del stores


@pytest.fixture
def served(terminal: Terminal) -> Iterator[Terminal]:
    """A terminal beside a server with a plain queue, and one with three classes: render."""
    yield from serving(terminal)


def serving(
    terminal: Terminal, prepare: Callable[[MemoryStores], Awaitable[None]] = _nothing
) -> Iterator[Terminal]:
    """Serve queues in which something has happened before."""
    ready: list[Server] = []
    begun = threading.Event()
    taken = take_port("127.0.0.1", 0)

    async def serve() -> None:
        stores = MemoryStores()
        await stores.queue("default").configure(Settings(max_per_submitter=3))
        await stores.queue("render").configure(THREE)
        await prepare(stores)
        server = Server(create_app(Desk(stores), hosts=own_hosts(taken)))
        serving = asyncio.create_task(server.serve([taken]))
        await server.up.wait()
        ready.append(server)
        begun.set()
        await serving

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert begun.wait(30)
    terminal.data.mkdir()
    (terminal.data / "address").write_text(address(taken))
    yield terminal
    ready[0].stop()
    thread.join()
    taken.close()


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "maitred.toml").write_text(CONFIG)
    house = House(tmp_path)
    yield house
    for process in house.running:
        if process.poll() is None:
            process.kill()
        process.communicate()
