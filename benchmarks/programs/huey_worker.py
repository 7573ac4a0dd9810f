"""huey's consumer: one process with BENCH_THREADS threads, what `huey_consumer.py -k thread -w N` runs."""

import os

from benchmarks.programs.huey_app import desk, huey

if __name__ == "__main__":
    consumer = huey.create_consumer(workers=int(os.environ["BENCH_THREADS"]), worker_type="thread")
    desk.say(ready=True)
    consumer.run()
