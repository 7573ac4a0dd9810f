"""What can go wrong while measuring.

    BenchmarkError
    ├── PeerUnavailable    a peer cannot be installed or run on this host; the others are still measured
    ├── ProgramEnded       a producer or worker ended in the middle of a measurement
    ├── ProgramFailed      a producer answered that it could not do what it was asked
    └── TooSlow            a step took longer than its bound

Each is one sentence for the person at the terminal, with the end of the program's own output where there
is one.
"""


class BenchmarkError(Exception):
    """A measurement could not be taken."""


class PeerUnavailable(BenchmarkError):
    """A peer cannot be installed or run on this host."""

    def __init__(self, peer: str, reason: str) -> None:
        super().__init__(f"{peer} cannot be measured here: {reason}")
        self.peer = peer
        self.reason = reason


class ProgramEnded(BenchmarkError):
    """A producer or worker ended in the middle of a measurement."""

    def __init__(self, program: str, last_words: str) -> None:
        super().__init__(f"{program} ended before it was done; its output ends with:\n{last_words}")
        self.program = program
        self.last_words = last_words


class ProgramFailed(BenchmarkError):
    """A producer answered that it could not do what it was asked."""

    def __init__(self, program: str, reason: str) -> None:
        super().__init__(f"{program} failed: {reason}")
        self.program = program
        self.reason = reason


class TooSlow(BenchmarkError):
    """A step took longer than its bound."""

    def __init__(self, program: str, step: str, seconds: float, last_words: str) -> None:
        super().__init__(
            f"{program} did not {step} within {seconds:.0f} s; its output ends with:\n{last_words}"
        )
        self.program = program
        self.step = step
        self.seconds = seconds
        self.last_words = last_words
