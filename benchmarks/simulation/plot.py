"""The plot of the deadline: how long those waited who came at a time, by policy and by what they asked.

A small SVG writer of its own, so that the picture is the same to the byte wherever it is made. It has a light
and a dark dress; the reader's browser chooses.
"""

from collections.abc import Sequence
from html import escape

from benchmarks.simulation.deadline import HOURS
from benchmarks.simulation.play import Play
from benchmarks.simulation.visit import Visit
from benchmarks.simulation.workloads import ELASTIC
from maitred.core.settings import MINUTE

WIDTH, HEIGHT = 960, 430
TOP, BOTTOM, LEFT, RIGHT, GAP = 96, 62, 62, 26, 40
SHOWN = 90  # minutes before the deadline
STEP = 10
PANELS = {
    "asked for fast": ("fast",),
    "asked for medium or slow": ("medium", "slow"),
    "asked for none (elastic)": (ELASTIC,),
}
# Squeeze lies on borrow nearly everywhere: it is drawn last, thin and dashed, so that both are seen.
LINES = ("plain", "specific", "borrow", "squeeze")

_STYLE = """
  text { font-family: Helvetica, Arial, 'Liberation Sans', sans-serif; fill: #334155; font-size: 13px }
  .title { font-size: 16px; font-weight: 600; fill: #0f172a }
  .panel { font-size: 14px; font-weight: 600; fill: #0f172a }
  .paper { fill: #ffffff; stroke: #e2e8f0 }
  .grid { stroke: #e2e8f0 }
  .axis { stroke: #64748b }
  .line { fill: none; stroke-width: 2.5; stroke-linejoin: round; stroke-linecap: round }
  .borrow { stroke: #0072b2; stroke-width: 4 }
  .squeeze { stroke: #f0a500; stroke-width: 2; stroke-dasharray: 5 5 }
  .specific { stroke: #009e73 }
  .plain { stroke: #c2410c }
  @media (prefers-color-scheme: dark) {
    text { fill: #cbd5e1 }
    .title, .panel { fill: #f1f5f9 }
    .paper { fill: #0f172a; stroke: #334155 }
    .grid { stroke: #263449 }
    .axis { stroke: #94a3b8 }
    .borrow { stroke: #4aa8e0 }
    .squeeze { stroke: #ffc84a }
    .specific { stroke: #34d399 }
    .plain { stroke: #fb8a5c }
  }
"""

Point = tuple[float, float]


def plot(plays: Sequence[Play]) -> str:
    """Draw the plays of the deadline; policies that have no line in the plot are left out."""
    drawn = {play.policy.name: play for play in plays if play.policy.name in LINES}
    curves = {
        panel: {name: _curve(drawn[name], asked) for name in LINES if name in drawn}
        for panel, asked in PANELS.items()
    }
    longest = max(y for lines in curves.values() for points in lines.values() for _, y in points)
    top = max(5, -5 * int(-longest // 5))
    parts = [_frame(), *_legend(list(drawn))]
    width = (WIDTH - LEFT - RIGHT - GAP * (len(PANELS) - 1)) / len(PANELS)
    for at, (panel, lines) in enumerate(curves.items()):
        parts += _panel(LEFT + at * (width + GAP), width, top, panel, lines, numbered=at == 0)
    return _document(parts)


def _curve(play: Play, asked: Sequence[str]) -> list[Point]:
    """Give the mean wait in minutes of those who came in each ten minutes, by minutes before the deadline."""

    def mean_wait(begin: int) -> float:
        return play.waits(lambda visit: _came(play, visit, asked, begin)).mean / 60

    return [(begin - STEP / 2, mean_wait(begin)) for begin in range(SHOWN, 0, -STEP)]


def _came(play: Play, visit: Visit, asked: Sequence[str], begin: int) -> bool:
    before = HOURS * 60 - visit.arrival.at / MINUTE
    return begin - STEP <= before < begin and play.asked[visit.arrival.id] in asked


def _panel(
    left: float, width: float, top: int, title: str, lines: dict[str, list[Point]], *, numbered: bool
) -> list[str]:
    floor = HEIGHT - BOTTOM

    def place(point: Point) -> Point:
        before, wait = point
        return left + width * (1 - before / SHOWN), floor - (floor - TOP) * wait / top

    parts = [_text(left + width / 2, TOP - 12, title, kind="panel")]
    for minutes in range(0, top + 1, 10 if top > 25 else 5):
        y = place((0, minutes))[1]
        parts.append(_stroke("axis" if minutes == 0 else "grid", (left, y), (left + width, y)))
        if numbered:
            parts.append(_text(left - 8, y + 4, str(minutes), anchor="end"))
    for before in range(0, SHOWN + 1, 30):
        x = place((before, 0))[0]
        parts.append(_stroke("axis", (x, floor), (x, floor + 5)))
        parts.append(_text(x, floor + 20, str(before)))
    for name, points in lines.items():
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(place, points))
        parts.append(f'<polyline class="line {name}" points="{path}"/>')
    return parts


def _frame() -> str:
    middle = (TOP + HEIGHT - BOTTOM) / 2
    return "\n".join(
        [
            f'<rect class="paper" x="0.5" y="0.5" width="{WIDTH - 1}" height="{HEIGHT - 1}" rx="12"/>',
            _text(
                LEFT,
                30,
                "The end of a deadline: mean wait by the time of submission",
                anchor="start",
                kind="title",
            ),
            _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 16, "submitted so many minutes before the deadline"),
            f'<text transform="translate(22 {middle}) rotate(-90)" text-anchor="middle">wait, minutes</text>',
        ]
    )


def _legend(names: Sequence[str]) -> list[str]:
    parts = []
    for at, name in enumerate(sorted(names)):
        x = LEFT + 118 * at
        parts.append(_stroke(f"line {name}", (x, 51), (x + 34, 51)))
        parts.append(_text(x + 42, 55, name, anchor="start"))
    return parts


def _stroke(kind: str, start: Point, end: Point) -> str:
    return (
        f'<line class="{kind}" x1="{start[0]:.1f}" y1="{start[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}"/>'
    )


def _text(x: float, y: float, words: str, *, anchor: str = "middle", kind: str = "") -> str:
    dress = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{dress}>{escape(words)}</text>'


def _document(parts: Sequence[str]) -> str:
    described = (
        "Three plots side by side, for jobs that asked for fast, for medium or slow, and for no class. Each "
        "shows the mean wait in minutes over the last hour and a half before the deadline, for the policies "
        "borrow, squeeze, specific and plain. The figures are in the tables of simulation.md."
    )
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-labelledby="title desc">',
            '<title id="title">Waits at the end of a deadline</title>',
            f'<desc id="desc">{described}</desc>',
            f"<style>{_STYLE}</style>",
            *parts,
            "</svg>",
            "",
        ]
    )
