"""For the tests of programs that use Maitred: the queue in memory, with a clock that tests set.

    # conftest.py
    pytest_plugins = ["maitred.testing"]

    # test_grading.py
    async def test_a_quiz_is_graded(rehearse: Rehearsals) -> None:
        rehearsal = rehearse(q)
        job = await rehearsal.submit({"key": "quiz-1", "submitter": {"type": "user", "id": "ada"}, "run": …})
        await rehearsal.run_until_idle()
        assert await rehearsal.completed(job.id) == 3.0

Nothing of it is a mock: jobs go through the same rules, the same worker and the same handlers as on a server,
over the reference store. Only time is not real, so that delays and back-offs pass without waiting.

The fixture is loaded by name and not by an entry point of the package: whoever has Maitred installed and does
not test with it gets no fixture, and pays nothing when pytest starts. Without pytest, make a `Rehearsal`.
"""

from contextlib import suppress

from maitred.testing.callbacks import Callback
from maitred.testing.clock import Clock
from maitred.testing.rehearsal import Rehearsal
from maitred.testing.rehearsals import Rehearsals

with suppress(ModuleNotFoundError):  # pytest is not needed to rehearse
    from maitred.testing.fixtures import rehearse as rehearse

__all__ = ["Callback", "Clock", "Rehearsal", "Rehearsals"]
