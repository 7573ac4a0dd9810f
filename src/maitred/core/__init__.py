"""The rules, pure: standard library only, with the clock and the dice passed in and no I/O."""
