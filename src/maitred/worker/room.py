"""A room: a private directory with a job's files, in which its programs run one after the other.

Nothing of it is left when it is closed: no process, no file, whatever the programs did.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from maitred.core.output import Artifact
from maitred.worker.cgroup import Group
from maitred.worker.files import collect
from maitred.worker.finding import expect_program
from maitred.worker.jail import Walls
from maitred.worker.output import OnOutput, Printed
from maitred.worker.program import Ended, Watch, end_tree, start, to_its_end, true_exit
from maitred.worker.terminal import Tended, Terminal, open_terminal
from maitred.worker.tree import MARK, Bubble, OfSession, OfUser, Tree


class Room:
    """Runs programs within walls; made by `Sandbox.room`."""

    def __init__(
        self, walls: Walls, kill_after: float, group: Group | None, started: Callable[[int], None]
    ) -> None:
        self._walls, self._kill_after, self._group, self._started = walls, kill_after, group, started

    @property
    def home(self) -> Path:
        """The directory with the job's files, as the worker sees it. What is in it is not to be trusted."""
        return self._walls.home

    async def run(
        self,
        argv: Sequence[str],
        *,
        cwd: str = ".",
        env: Mapping[str, str] | None = None,
        limit: float | None = None,
        on_output: OnOutput | None = None,
    ) -> Ended:
        """Run a program to its end, for at most `limit` seconds.

        `on_output` hears all that it prints. Cancelling this stops the program, and what became of it is
        given all the same, with `stopped`. OSError or ValueError if it cannot be started.
        """
        self._expect(argv[0], cwd)
        with self._note() as note:
            printed = [Printed("stdout", on_output), Printed("stderr", on_output)]
            starting = asyncio.ensure_future(
                start(
                    self._around(argv, cwd, note),
                    cwd=self._cwd(cwd),
                    env=self._environment(env),
                    printed=printed,
                    pass_fds=() if note is None else (note,),
                )
            )
            return await self._see_through(starting, printed, limit, note)

    async def _see_through(
        self,
        starting: "asyncio.Future[asyncio.subprocess.Process]",
        printed: list[Printed],
        limit: float | None,
        note: int | None,
    ) -> Ended:
        """Wait until a program has started, and then until it is gone."""
        stopped = timed_out = False
        try:
            process = await asyncio.shield(starting)
        except asyncio.CancelledError:
            # Only what has started can be ended with all that it starts itself.
            process, stopped = await starting, True
        self._started(process.pid)
        tree = self._tree(process.pid, note)
        watch = Watch(tree, self._walls.limits, self._walls.place, self._group)
        watching = asyncio.ensure_future(watch.run())
        try:
            if not stopped:
                async with asyncio.timeout(limit):
                    await process.wait()
        except asyncio.CancelledError:
            stopped = process.returncode is None
        except TimeoutError:
            timed_out = process.returncode is None
        finally:
            watching.cancel()
            await to_its_end(self._end(process, tree, printed))
        code = true_exit(process.returncode or 0, in_bubble=bool(self._walls.host.bwrap))
        return Ended(
            code,
            printed[0].tail.text(),
            printed[1].tail.text(),
            hit=watch.verdict(code),
            killed=watch.killed,
            timed_out=timed_out,
            stopped=stopped,
        )

    async def run_terminal(
        self,
        argv: Sequence[str],
        size: tuple[int, int],
        on_output: OnOutput,
        *,
        env: Mapping[str, str] | None = None,
    ) -> Terminal:
        """Start a program on a pseudo-terminal of (columns, rows); what it shows is heard as `tty`.

        OSError or ValueError if it cannot be started.
        """
        self._expect(argv[0], ".")
        stack = contextlib.ExitStack()
        note = stack.enter_context(self._note())

        def tend(pid: int) -> Tended:
            tree = self._tree(pid, note)
            watch = Watch(tree, self._walls.limits, self._walls.place, self._group)
            return Tended(
                tree, watch, self._group, self._kill_after, bool(self._walls.host.bwrap), stack.close
            )

        try:
            terminal = await open_terminal(
                self._around(argv, ".", note, terminal=True),
                cwd=self._cwd("."),
                env=self._environment({"TERM": "xterm-256color", **(env or {})}),
                size=size,
                on_output=on_output,
                tend=tend,
                pass_fds=() if note is None else (note,),
            )
        except BaseException:
            stack.close()
            raise
        self._started(terminal.pid)
        return terminal

    async def collect(self, names: Iterable[str], limit: int) -> tuple[list[Artifact], dict[str, str]]:
        """Give the files that are to be kept, at most so many bytes, and for each other one why not."""
        return await asyncio.to_thread(
            collect, self.home, list(names), limit, self._walls.user or os.geteuid()
        )

    # ---------------------------------------------------------------- within

    @contextlib.contextmanager
    def _note(self) -> Iterator[int | None]:
        """Make a file for bubblewrap to write into, where there is one."""
        if not self._walls.host.bwrap:
            yield None
            return
        note = os.memfd_create("bubble")
        try:
            yield note
        finally:
            os.close(note)

    def _around(
        self, argv: Sequence[str], cwd: str, note: int | None, *, terminal: bool = False
    ) -> list[str]:
        words = self._walls.around(argv, cwd, note, terminal=terminal)
        return self._group.around(words) if self._group else words

    def _environment(self, more: Mapping[str, str] | None) -> dict[str, str]:
        found = self._walls.environment(more)
        return found if self._walls.host.bwrap or self._walls.user else found | {MARK: self._walls.place.name}

    def _cwd(self, cwd: str) -> Path:
        # In the bubble the way there is another one, and bubblewrap goes it.
        return Path("/") if self._walls.host.bwrap else self.home / cwd

    def _tree(self, pid: int, note: int | None) -> Tree:
        if note is not None:
            return Bubble(pid, note)
        return OfUser(self._walls.user) if self._walls.user else OfSession(pid, self._walls.place.name)

    def _expect(self, name: str, cwd: str) -> None:
        """Raise what starting it would: behind the walls nobody can tell why it did not start."""
        if not (self.home / cwd).is_dir():
            raise FileNotFoundError(f"there is no directory {cwd!r}")
        expect_program(self._walls, name, cwd)

    async def _end(
        self,
        process: asyncio.subprocess.Process,
        tree: Tree,
        printed: list[Printed],
    ) -> None:
        await end_tree(process, tree, self._group, self._kill_after)
        # With the tree gone the pipes end; only somebody who got away could hold them open.
        await asyncio.wait([each.over for each in printed], timeout=max(1.0, self._kill_after))
        for each in printed:
            each.close()
