"""The programs that adapters start: a producer and a worker per system, each in its own environment.

They may use nothing but the standard library and their system, since Maitred is not installed beside the
peers. All are told where things are by the environment: `BENCH_DESK` is the socket on which they talk
with the harness (see `benchmarks/program.py`), `BENCH_STORE` the store's socket, `BENCH_JOBS` the number
of jobs that a worker is to count.

Times that cross processes are the kernel's monotonic clock in nanoseconds, which all processes of a host
share: Python's `time.monotonic_ns` and Node's `process.hrtime.bigint` read the same one, and no clock
adjustment moves it.
"""
