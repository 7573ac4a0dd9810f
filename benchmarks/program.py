"""A producer or worker that the harness started, and the conversation with it.

Systems print what they like, and some start processes of their own, so nothing is read from a program's
output. Each program connects to a unix socket whose path it finds in `BENCH_DESK` and speaks lines of
JSON there: first `ready`, then, a worker by itself and a producer when it is asked, what it has measured.
Its output goes to a file whose end is shown if something fails.

Programs are killed, not stopped: their store is thrown away with them, so there is nothing to hand back,
and a program that hangs cannot hold up the run. The whole process group goes.
"""

import contextlib
import json
import os
import signal
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.errors import ProgramEnded, ProgramFailed, TooSlow
from maitred.store.valkey.tether import Tethered

ROOT = Path(__file__).resolve().parent.parent
_CHECK = 0.5
_LAST_WORDS = 2000

Message = dict[str, Any]


@dataclass(frozen=True)
class Command:
    """How to start a program."""

    name: str
    argv: Sequence[str | Path]
    environment: Mapping[str, str] = field(default_factory=dict)


class Program:
    """A running producer or worker; `ready` holds what it said when it could begin."""

    def __init__(
        self, command: Command, folder: Path, environment: Mapping[str, str], *, within: float
    ) -> None:
        self.name = command.name
        self._log = folder / f"{command.name}.log"
        self._buffer = b""
        self._connection: socket.socket | None = None
        desk = folder / f"{command.name}.sock"
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(desk))
            listener.listen()
            self._process = self._start(command, {**environment, "BENCH_DESK": str(desk)})
            try:
                self._connection = self._accept(listener, within)
                self.ready = self.hear(within, step="get ready")
            except BaseException:
                self.kill()
                raise

    @property
    def pid(self) -> int:
        """The process's id, which is its group's too."""
        return self._process.pid

    def tell(self, message: Message) -> None:
        """Send one line."""
        assert self._connection is not None
        try:
            self._connection.sendall(json.dumps(message).encode() + b"\n")
        except OSError as error:
            raise ProgramEnded(self.name, self._last_words()) from error

    def hear(self, within: float, *, step: str = "answer") -> Message:
        """Wait for one line. Raises `TooSlow`, `ProgramEnded`, or `ProgramFailed` if the line says so."""
        assert self._connection is not None
        deadline = time.monotonic() + within
        while b"\n" not in self._buffer:
            self._connection.settimeout(self._patience(deadline, within, step))
            try:
                piece = self._connection.recv(65536)
            except TimeoutError:
                continue
            except OSError as error:
                raise ProgramEnded(self.name, self._last_words()) from error
            if not piece:
                raise ProgramEnded(self.name, self._last_words())
            self._buffer += piece
        line, _, self._buffer = self._buffer.partition(b"\n")
        message: Message = json.loads(line)
        if "error" in message:
            raise ProgramFailed(self.name, str(message["error"]))
        return message

    def ask(self, message: Message, within: float) -> Message:
        """Send one line and wait for the answer."""
        self.tell(message)
        return self.hear(within, step=str(message.get("do", "answer")))

    def kill(self) -> None:
        """End the program and everything in its process group; returns when it is gone."""
        if self._connection is not None:
            self._connection.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.stop(patience=5)

    def _start(self, command: Command, environment: Mapping[str, str]) -> Tethered:
        with self._log.open("ab") as output:
            return Tethered(
                command.argv,
                cwd=ROOT,
                output=output.fileno(),
                environment={**os.environ, **environment, **command.environment},
            )

    def _accept(self, listener: socket.socket, within: float) -> socket.socket:
        deadline = time.monotonic() + within
        while True:
            listener.settimeout(self._patience(deadline, within, "get ready"))
            with contextlib.suppress(TimeoutError):
                return listener.accept()[0]

    def _patience(self, deadline: float, within: float, step: str) -> float:
        """Say how long to wait before looking again; raises if the program or the time is gone."""
        if not self._process.running:
            raise ProgramEnded(self.name, self._last_words())
        left = deadline - time.monotonic()
        if left <= 0:
            raise TooSlow(self.name, step, within, self._last_words())
        return min(left, _CHECK)

    def _last_words(self) -> str:
        words = self._log.read_bytes()[-_LAST_WORDS:].decode(errors="replace").strip()
        return words or "(nothing)"
