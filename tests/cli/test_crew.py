"""The workers of one process end together, in order, also when one of them cannot work."""

from maitred.cli.crew import Crew, Making
from maitred.cli.premises import Premises
from maitred.service.host import Host
from maitred.service.metrics import Metrics
from maitred.store.memory import MemoryStores


async def test_a_late_worker_that_fails_while_all_end_keeps_nobody_from_ending() -> None:
    crew = Crew(MemoryStores(), Making({}, 1, Premises(Host(), ())), Metrics())
    assert crew.hire(["nobody-configured-it"]) == ["nobody-configured-it"]
    await crew.close()
    assert crew.queues == []
