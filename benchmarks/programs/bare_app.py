"""The bare hand-off: what is left of a queue when everything but the wire is taken away.

One process pushes a time onto a list, the other waits for it with a blocking pop. No queue with the same
client library can start a job sooner, so this is the limit that start latencies are read against.
"""

import os

import redis

KEY = "bare"


def connect() -> "redis.Redis":
    return redis.Redis(unix_socket_path=os.environ["BENCH_STORE"])
