"""A floor in slow motion: the cycle told step by step, with nothing clever in it.

It knows what no server knows, how long each job would run, and so it tells when each job really starts. The
tests compare the planner with it.
"""

from dataclasses import dataclass, field

from maitred.core.estimate import Waiting
from maitred.core.floor import Kind
from maitred.core.occupancy import Running

FOREVER = 1 << 40


@dataclass(slots=True)
class Guest:
    """A job: its class, how long it may run, how long it would run, and when it may start."""

    name: int
    level: int
    granted: int
    lasts: int
    kind: Kind = Kind.SPECIFIC
    release: int = 0
    start: int = 0
    stopping: int | None = None
    gone: int = FOREVER

    def ends(self) -> int:
        """Tell when it ends: by itself, or by the stop that is under way."""
        return min(self.start + self.lasts, self.gone)

    def seen(self) -> Running:
        """Give what a server may know of it while it runs."""
        return Running(self.start, self.level, self.granted, self.kind, stopping=self.stopping)

    def waits(self) -> Waiting:
        """Give what a server may know of it while it stands in line."""
        return Waiting(self.level, self.kind is Kind.ELASTIC, release=self.release)


@dataclass
class Simulation:
    """The slots, who holds them, and who stands in line; a stop takes `kill_after` unless told otherwise."""

    caps: list[int]
    limits: list[int]
    kill_after: int = 0
    now: int = 0
    running: list[Guest] = field(default_factory=list)
    line: list[Guest] = field(default_factory=list)
    started: dict[int, int] = field(default_factory=dict)

    def due(self) -> list[Guest]:
        return [guest for guest in self.line if guest.release <= self.now]

    def free(self, *, stopped: bool = False) -> list[int]:
        """Count the free units of each level; with `stopped` those being stopped are free already."""
        units = []
        for level, limit in enumerate(self.limits, 1):
            held = [guest for guest in self.running if guest.level >= level]
            units.append(limit - sum(not (stopped and guest.stopping is not None) for guest in held))
        return units

    def overdue(self, guest: Guest) -> bool:
        return guest.kind is Kind.ELASTIC and self.now - guest.start >= self.caps[0]

    def cycle(self) -> None:
        """Start and stop whoever can and must be, until nothing changes."""
        while self.end_what_ended() or self.start_one() or self.stop_one():
            pass

    def end_what_ended(self) -> bool:
        for guest in self.running:
            if guest.stopping is None and self.now >= guest.start + guest.granted and guest.ends() > self.now:
                self.stop(guest)
        left = [guest for guest in self.running if guest.ends() > self.now]
        ended = len(left) < len(self.running)
        self.running = left
        return ended

    def start_one(self) -> bool:
        """Walk the line: a full level sets the classes that need it aside."""
        aside = len(self.limits) + 1
        free = self.free()
        for guest in self.due():
            if guest.level >= aside:
                continue
            full = [level for level in range(1, guest.level + 1) if free[level - 1] <= 0]
            if full:
                aside = full[0]
                continue
            self.line.remove(guest)
            self.seat(guest)
            self.started[guest.name] = self.now
            return True
        return False

    def seat(self, guest: Guest) -> None:
        guest.start = self.now
        self.running.append(guest)

    def stop_one(self) -> bool:
        """Stop one for the first in line that misses nothing but a slot and finds no stop to wait for."""
        aside = len(self.limits) + 1
        free = self.free(stopped=True)
        for guest in self.due():
            if guest.level >= aside:
                continue
            full = [level for level in range(2, guest.level + 1) if free[level - 1] <= 0]
            if full:
                aside = full[0]
                continue
            for level in range(guest.level):
                free[level] -= 1
            if free[0] < 0:
                return self.reclaim()
        return False

    def reclaim(self) -> bool:
        left = [guest for guest in self.running if guest.stopping is None]
        idle = [guest for guest in left if guest.kind is Kind.INTERACTIVE]
        overdue = [guest for guest in left if self.overdue(guest)]
        victims = idle or overdue
        if victims:
            self.stop(max(victims, key=lambda guest: (guest.start, guest.name)))
        return bool(victims)

    def stop(self, guest: Guest) -> None:
        guest.stopping = self.now
        guest.gone = self.now + self.kill_after

    def next_event(self) -> int | None:
        """Tell when something happens by itself: an end, a limit, an elastic overdue, a place due."""
        moments = [guest.release for guest in self.line]
        for guest in self.running:
            moments += [guest.ends(), guest.start + guest.granted]
            if guest.kind is Kind.ELASTIC:
                moments.append(guest.start + self.caps[0])
        return min((moment for moment in moments if moment > self.now), default=None)

    def go_to(self, moment: int) -> None:
        """Let time pass, event by event."""
        while (event := self.next_event()) is not None and event <= moment:
            self.now = event
            self.cycle()
        self.now = max(self.now, moment)
        self.cycle()

    def play(self) -> dict[int, int]:
        """Play to the end; tell when each job in line started."""
        self.cycle()
        while self.line and (event := self.next_event()) is not None:
            self.go_to(event)
        return self.started
