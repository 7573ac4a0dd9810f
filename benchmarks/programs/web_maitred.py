"""Maitred's server, as `maitred serve` runs it, beside the store of the stand."""

import os

import uvloop

from benchmarks.programs.desk import Desk
from benchmarks.programs.web import serve
from maitred.http import create_app, own_hosts, take_port
from maitred.service.desk import Desk as ServerDesk
from maitred.service.foresights import Foresights
from maitred.store.connect import connect


async def main() -> None:
    stores = connect(f"unix://{os.environ['BENCH_STORE']}")
    with take_port("127.0.0.1", 0) as taken:
        desk = ServerDesk(stores, foresights=Foresights(stores))
        await serve(create_app(desk, hosts=own_hosts(taken)), taken, Desk())


if __name__ == "__main__":
    uvloop.run(main())
