"""The rules, pure: standard library only, no I/O, and the clock and the dice are passed in."""
