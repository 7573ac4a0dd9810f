"""A child process that ends when its parent does, however that ends.

A parent that is killed by SIGKILL cannot tell its children. On Linux the kernel can: it sends a signal when
the parent is gone. But to the kernel "the parent" is the *thread* that started the child, so a thread of our
own starts it and lives as long as it does; which thread asked, and whether that one has ended, is then of no
account. Elsewhere a process beside the child waits for the end of a pipe, the rope, whose other end only the
parent holds. Either way `launch.py` makes the tie and then becomes the program.

The child has a session of its own: a Ctrl-C in the terminal is for the parent to handle, who may still need
it.
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path

_LAUNCH = Path(__file__).with_name("launch.py")


class Tethered:
    """A running program that gets SIGTERM when this process ends, even by SIGKILL.

    `keep` are descriptors that it inherits. Raises `OSError` if it cannot be started; a program that cannot
    be run ends at once, and `output` has the reason.
    """

    def __init__(
        self,
        command: Sequence[str | Path],
        *,
        cwd: Path,
        output: int,
        environment: Mapping[str, str],
        keep: Sequence[int] = (),
        by_pipe: bool = sys.platform != "linux",
    ) -> None:
        end, self._rope = os.pipe() if by_pipe else (-1, -1)
        launch = [sys.executable, "-I", "-S", _LAUNCH, str(os.getpid()), str(end), *command]
        started: Future[subprocess.Popen[bytes]] = Future()

        def start_and_stay() -> None:
            try:
                process = subprocess.Popen(
                    launch,
                    cwd=cwd,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    pass_fds=[*keep, end] if by_pipe else keep,
                    start_new_session=True,
                )
            except BaseException as error:  # noqa: BLE001 - the caller's thread raises it
                started.set_exception(error)
                return
            started.set_result(process)
            process.wait()

        self._thread = threading.Thread(target=start_and_stay, name="tether", daemon=True)
        self._thread.start()
        try:
            self._process = started.result()
        except BaseException:
            self.forget()
            raise
        finally:
            if by_pipe:
                os.close(end)
        self.pid = self._process.pid

    @property
    def running(self) -> bool:
        """Whether the program still runs."""
        return self._thread.is_alive()

    def stop(self, patience: float) -> None:
        """Ask it to end, wait for `patience` seconds, then kill it; returns when it is gone."""
        self._process.send_signal(signal.SIGTERM)
        self._thread.join(patience)
        if self._thread.is_alive():
            self._process.kill()
            self._thread.join()
        self.forget()

    def forget(self) -> None:
        """Give up this process's end of the rope; in a forked child this leaves the program to the parent."""
        if self._rope != -1:
            os.close(self._rope)
            self._rope = -1
