"""Become a program that ends with its parent; run as a script by `maitred.store.valkey.tether`.

    launch.py PARENT ROPE PROGRAM [ARGUMENT ...]

PARENT is the pid of the process that starts this one, ROPE a pipe's read end, or -1 for the kernel's own way:
on Linux it sends SIGTERM when the parent is gone. With a rope, a process beside the program waits until
nobody holds the other end. This is a script and not a function called between fork and exec, since Python
code there is not safe in a process with threads. It imports nothing but the standard library, so it starts in
milliseconds.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def signal_at_parents_death() -> None:
    """Have the kernel send SIGTERM to this process, also as the program, when the parent is gone."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)


def watch(rope: int) -> None:
    """Leave a process behind that sends SIGTERM to this one when the other end of `rope` is closed."""
    program = os.getpid()
    if os.fork() != 0:
        os.close(rope)
        return
    # Anything inherited here, such as a lock that has to end with the program, would outlive it.
    os.closerange(0, rope)
    os.closerange(rope + 1, min(os.sysconf("SC_OPEN_MAX"), 1 << 16))
    ended = os.read(rope, 1) == b""
    if ended and os.getppid() == program:
        os.kill(program, signal.SIGTERM)
    os._exit(0)


def main() -> None:
    """Tie this process to its parent and become the program."""
    parent, rope, program, *_ = sys.argv[1:]
    if rope == "-1":
        signal_at_parents_death()
    else:
        watch(int(rope))
    # A parent that died before the tie was there would never be noticed.
    if os.getppid() == int(parent):
        os.execv(program, sys.argv[3:])


if __name__ == "__main__":
    main()
