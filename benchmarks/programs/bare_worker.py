"""The bare hand-off's worker: BLMPOP in a loop."""

from typing import Any, cast

from benchmarks.programs.bare_app import KEY, connect
from benchmarks.programs.desk import Desk
from benchmarks.programs.tally import Tally

if __name__ == "__main__":
    desk = Desk()
    tally = Tally(desk)
    client = connect()
    client.ping()
    desk.say(ready=True)
    while True:
        popped = cast("tuple[bytes, list[Any]] | None", client.blmpop(1, 1, KEY, direction="LEFT", count=64))
        for sent in popped[1] if popped else ():
            tally.started(int(sent))
