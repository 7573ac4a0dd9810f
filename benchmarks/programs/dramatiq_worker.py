"""dramatiq's worker: one process, BENCH_THREADS threads, like `dramatiq -p 1 -t N`."""

import os
import threading

import dramatiq  # type: ignore[import-not-found]

from benchmarks.programs.dramatiq_app import broker, desk

if __name__ == "__main__":
    dramatiq.Worker(broker, worker_threads=int(os.environ["BENCH_THREADS"])).start()
    desk.say(ready=True)
    threading.Event().wait()
