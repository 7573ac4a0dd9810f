"""What one queue allows of a job: how long a delay may be, which classes it has, and what it runs.

The limits of the contract are the same everywhere and stand at the fields of the body; these differ from
queue to queue. Whoever knows the queue passes them in, so that all faults of a body can be told at once.
"""

from typing import NamedTuple


class Allowed(NamedTuple):
    """The longest delay, and the classes by name with their caps, shortest first; all in seconds.

    `stages` are those of a queue in which each stage has a function of its own; then jobs name none.
    `profiles` are the only ones that jobs and batches may name, if there are any.
    """

    max_delay: float
    classes: tuple[tuple[str, float], ...]
    stages: tuple[str, ...] = ()
    profiles: tuple[str, ...] = ()

    def run_fault(self, *, staged: bool) -> str | None:
        """Say what is wrong with a run for stages (`staged`), or one of another kind; None if nothing is."""
        if staged == bool(self.stages):
            return None
        if self.stages:
            return f'this queue has stages ({", ".join(self.stages)}); send {{"args": {{…}}}}'
        return (
            'this queue has no stages; send {"handler": …, "args": {…}}, {"command": […]} or {"script": […]}'
        )

    def profile_fault(self, name: str) -> str | None:
        """Say what is wrong with a profile that is named; None if nothing is."""
        if not self.profiles or name in self.profiles:
            return None
        return f"must be one of {', '.join(self.profiles)}"

    def delay_fault(self, delay: float | None) -> str | None:
        """Say what is wrong with a delay; None if nothing is."""
        if delay is None or delay <= self.max_delay:
            return None
        return f"must be at most {self.max_delay:g} seconds, the queue's max_delay"

    def class_fault(self, name: object) -> str | None:
        """Say what is wrong with a class that is asked for; None if nothing is."""
        if any(name == known for known, _ in self.classes):
            return None
        return f"must be one of {self._named('{} ({})')}"

    def duration_fault(self, duration: object) -> str | None:
        """Say what is wrong with a duration in seconds that is asked for; None if nothing is."""
        longest = self.classes[-1][1]
        is_number = isinstance(duration, int | float) and not isinstance(duration, bool)
        if is_number and 0 < duration <= longest:  # type: ignore[operator]
            return None
        return f"must be a number above 0 and at most {_seconds(longest)} ({self._named('{} {}')})"

    def both_fault(self) -> str:
        """Say that a class and a duration were asked for at once."""
        return f'cannot be sent together with "class"; the classes are {self._named("{} ({})")}'

    def _named(self, form: str) -> str:
        return ", ".join(form.format(name, _seconds(cap)) for name, cap in self.classes)


def _seconds(number: float) -> str:
    return f"{number:.6f}".rstrip("0").rstrip(".") + " s"
