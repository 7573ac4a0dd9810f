"""Maitred measured beside other job queues: `python -m benchmarks`, or `make bench`.

Absolute figures say little: the same code is twice as fast on one machine as on the next, and on a shared
one from one minute to the next. So every figure is taken for all systems in one run, on the same server
program with the same allocator and the same append-only file, in turns and several times; what is worth
keeping are the ratios.

Where things are:

- `systems/`   one adapter per queue: how its producer and its worker are started, and with which settings
- `programs/`  what the adapters start, each in its system's own environment
- `figures/`   one measurement each: drain, enqueue, start latency, idling, memory, server time
- `stand.py`   a fresh store and the programs around it, which all end with it
- `simulation/`  no measurement: the Floor under load in virtual time, `python -m benchmarks simulate`
- `run.py`     the order of rounds;  `results.py`, `targets.py`, `table.py`  what is made of the readings
"""
