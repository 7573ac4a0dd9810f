"""Random floors for the planner: classes, limits and who runs, in small numbers that collide often."""

import hypothesis.strategies as st
from hypothesis.strategies import DrawFn

from maitred.core.classes import DurationClass, Limit
from maitred.core.floor import Kind
from maitred.core.occupancy import Occupancy
from tests.core.simulation import FOREVER, Guest, Simulation

NOW = 100

kinds = st.sampled_from([Kind.SPECIFIC, Kind.SPECIFIC, Kind.ELASTIC])
numbers = st.integers(0, 999)


def guest(caps: list[int], name: int, number: int, kind: Kind, lasts: int = FOREVER) -> Guest:
    """Make a job of this kind; the number chooses its class."""
    if kind is Kind.INTERACTIVE:
        return Guest(name, 1, 40, lasts, kind)
    if kind is Kind.ELASTIC:
        return Guest(name, 1, caps[-1], lasts, kind)
    level = 1 + number % len(caps)
    return Guest(name, level, caps[level - 1], lasts)


@st.composite
def floors(draw: DrawFn, *kill_after: int) -> Simulation:
    """Draw a floor with 1 to 5 classes on which jobs of all kinds run already; a stop takes one of these."""
    caps = sorted(draw(st.sets(st.integers(1, 30), min_size=1, max_size=5)))
    limits = [draw(st.integers(1, 6))]
    for _ in caps[1:]:
        limits.append(min(limits[-1], draw(st.integers(1, 6))))
    floor = Simulation(caps, limits, draw(st.sampled_from(kill_after or (0,))), NOW)
    every = st.tuples(st.sampled_from(Kind), numbers, numbers)
    for place, (kind, number, elapsed) in enumerate(draw(st.lists(every, max_size=9))):
        new = guest(caps, -1 - place, number, kind)
        if min(floor.free()[: new.level]) > 0:
            floor.seat(new)
            new.start -= elapsed % new.granted
    return floor


def occupancy(floor: Simulation, *, told: bool = False) -> Occupancy:
    """Show the floor as a server sees it; with `told` it knows how long each running job will run."""
    classes = [
        DurationClass(str(level), cap, Limit(limit) if level else None)
        for level, (cap, limit) in enumerate(zip(floor.caps, floor.limits, strict=True))
    ]
    running = [guest.seen() for guest in floor.running]
    if told:
        running = [seen._replace(granted=it.lasts) for seen, it in zip(running, floor.running, strict=True)]
    return Occupancy(floor.now, classes, floor.limits[0], running, floor.kill_after)
