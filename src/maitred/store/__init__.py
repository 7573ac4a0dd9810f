"""Where a queue lives: one port, and a store behind it."""
