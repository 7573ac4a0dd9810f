"""Bars: how much of something is used, as wide as there is room."""

from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

WIDEST = 40
NARROWEST = 6

_FULL, _EMPTY = "━", "─"
_FULL_ASCII, _EMPTY_ASCII = "#", "-"


class Bar:
    """A part of a whole; what is left is dim, and also told apart where there are no colours."""

    def __init__(self, part: float, whole: float, *, style: str = "cyan", widest: int = WIDEST) -> None:
        self.share = min(1.0, max(0.0, part / whole)) if whole > 0 else 0.0
        self._style = style
        self._widest = widest

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        full, empty = (_FULL_ASCII, _EMPTY_ASCII) if options.ascii_only else (_FULL, _EMPTY)
        width = min(options.max_width, self._widest)
        filled = round(width * self.share)
        yield Segment(full * filled, console.get_style(self._style))
        yield Segment(empty * (width - filled), Style(dim=True))
        yield Segment.line()

    def __rich_measure__(self, _console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(NARROWEST, self._widest).with_maximum(options.max_width)


def load_style(part: float, whole: float) -> str:
    """Give the colour of something that may be used up: yellow when it is, green before."""
    return "yellow" if whole > 0 and part >= whole else "green"


def dim(text: str) -> Text:
    """Give text that stands back."""
    return Text(text, style="dim")
