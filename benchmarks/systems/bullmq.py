"""BullMQ on Node: the fastest of the well-known peers, at least once, with scripts in the store.

A concurrency of 128 was best (32 and 256 are slower); keeping the completed jobs, its default, costs
nothing that can be measured. Its worker uses ioredis, the default, which drains faster; its producer
node-redis, the documented alternative, whose bulk is faster.
"""

from pathlib import Path

from benchmarks.environments import node, node_peers, node_version
from benchmarks.program import Command
from benchmarks.stand import Stand
from benchmarks.systems.system import System

_PROGRAMS = Path(__file__).resolve().parent.parent / "programs"


class BullMQ(System):
    name = "bullmq"
    settings = "1 process, concurrency 128, addBulk of 500"
    bulk = True

    def prepare(self) -> None:
        node()
        node_peers()

    def version(self) -> str:
        return node_version("bullmq")

    def producer(self, stand: Stand) -> Command:
        return _node_program("producer", stand)

    def worker(self, stand: Stand) -> Command:
        return _node_program("worker", stand, BENCH_CONCURRENCY="128")


def _node_program(role: str, stand: Stand, **environment: str) -> Command:
    return Command(
        name=f"bullmq-{role}",
        argv=[node(), _PROGRAMS / f"bullmq_{role}.mjs"],
        environment={
            "BENCH_STORE": str(stand.store.socket),
            # createRequire wants a file's path, existing or not, to look for node_modules beside.
            "BENCH_MODULES": str(node_peers() / "package.json"),
            "NODE_ENV": "production",
            **environment,
        },
    )
