"""The Floor under load, in virtual time: `python -m benchmarks simulate`, or `make simulate`.

The rule that decides here is the production one, `maitred.core.house.House`: workloads differ in who comes,
policies in how the queue is set, and nothing is measured in real time. The same seed gives the same output to
the byte, on every machine.

- `workloads.py`, `deadline.py`  who comes, drawn from a seed with `chance.py`
- `policies.py`                  how they are served
- `engine.py`                    people, a worker and a clock around the rule
- `visit.py`                     what goes in and what comes out
- `play.py`                      a workload under a policy, and its figures
- `tables.py`, `plot.py`         what is made of the figures;  `page.py`  puts them into `docs/simulation.md`
- `command.py`                   the command line
"""
