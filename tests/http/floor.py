"""A floor as the scenarios have it: classes of 3, 10 and 30 s, on four slots with 4, 2 and 1 units."""

from maitred.core.classes import PERCENT, DurationClass, Limit
from maitred.core.settings import MINUTE, SECOND, Settings

FAST = DurationClass("fast", 3 * SECOND)
MEDIUM = DurationClass("medium", 10 * SECOND, Limit(50 * PERCENT, percent=True))
SLOW = DurationClass("slow", 30 * SECOND, Limit(1))
THREE = Settings(classes=(FAST, MEDIUM, SLOW), lease=60 * MINUTE)

CLASSES = "fast (3 s), medium (10 s), slow (30 s)"
CAPS = "(fast 3 s, medium 10 s, slow 30 s)"
