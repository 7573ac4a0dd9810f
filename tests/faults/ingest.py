"""The ingest pipeline for faults: six stages that note each run, take space, stumble and fail as told.

Each stage appends a line when it begins and when it is through. From provisioning on a job takes its space
on a shared shelf, a file each, and puts it back before its end, so that what the store gives out can be held
against the budget at every moment. What a row's `trouble` says happens in the stage that it names.
"""

from collections import defaultdict
from random import Random

from maitred.core.invariants import violations
from maitred.core.job import Job, Phase
from maitred.core.snapshot import Snapshot
from maitred.core.stages import INGEST
from maitred.wire.codec import decode_body, encode_json
from tests.faults.scene import Scene
from tests.waiting import eventually

BUDGET = 1000
APPS = {"faults_app": INGEST, "front_app": INGEST[:3], "back_app": INGEST[2:]}

APP = f"""
import asyncio, contextlib, fcntl, os, random, time
import maitred

STAGES = {list(INGEST)}
q = maitred.Queue("default")


def note(what, job):
    line = f"{{what}} {{job.key}}@{{job.stage}} {{job.version}} {{os.getpid()}} {{time.time_ns() // 1000}}\\n"
    log = os.open("runs.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(log, line.encode())
    os.close(log)


@contextlib.contextmanager
def alone():
    with open("shelf.lock", "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def piece(job):
    return f"shelf/{{job.key.replace('/', '_')}}.{{job.args['size']}}"


def take_space(job):
    with alone():
        open(piece(job), "w").close()
        taken = sum(int(name.rpartition(".")[2]) for name in os.listdir("shelf"))
    if taken > {BUDGET}:
        note("over", job)


def give_back(job):
    with alone(), contextlib.suppress(FileNotFoundError):
        os.unlink(piece(job))


def stumble(job):
    kind, _, stage = job.args["trouble"].partition(":")
    if stage != job.stage:
        return
    if kind == "transient" and job.attempt < 3:
        note("stumble", job)
        raise maitred.Transient("the line is busy")
    if kind == "hopeless" or (kind == "fail" and not os.path.exists("mended")):
        if "size" in job.args:
            give_back(job)
        note("fail", job)
        raise ValueError(f"{{kind}} in {{stage}}")


async def step(job):
    note("begin", job)
    if "size" not in job.args:
        pass
    elif job.stage == "estimating":
        job.space_needed = int(job.args["size"])
    else:
        take_space(job)
    await asyncio.sleep(random.uniform(0, float(job.args["seconds"])))
    stumble(job)
    if job.stage == "notify" and "size" in job.args:
        give_back(job)
    note("end", job)
    return (job.data or []) + [job.stage]


for name in {{served}}:
    q.stage(name)(step)
"""

SETTINGS = f"""
stages = {list(INGEST)}
space = {BUDGET}
profiles = ["dryad", "etd"]
backoff = {{first = "20ms", most = "200ms"}}
"""


async def prepare(scene: Scene) -> None:
    """Write the settings, and an app for workers of all stages, of the first three and of the last four."""
    for name, served in APPS.items():
        text = APP.replace("{served}", repr(list(served)))
        (scene.home / f"{name}.py").write_text(text)
    (scene.home / "shelf").mkdir()
    scene.configure(100, SETTINGS)
    await scene.store.configure(scene.settings)


def manifest(rows: int, dice: Random, troubles: dict[int, str] | None = None, seconds: float = 0.05) -> str:
    """Write a CSV manifest; `troubles` are by row."""
    lines = ["size,trouble,seconds"]
    for row in range(1, rows + 1):
        trouble = (troubles or {}).get(row, "")
        size = BUDGET + 1 if trouble == "huge" else dice.randint(10, 300)
        lines.append(f"{size},{trouble},{seconds}")
    return "\n".join(lines) + "\n"


def checkm(rows: int, dice: Random) -> bytes:
    """Write a Checkm manifest; what else a row needs stands in the batch."""
    lines = [f"http://127.0.0.1/{row} | | | {dice.randint(10, 300)} | | f{row}" for row in range(rows)]
    return "\n".join(["#%checkm_0.7", *lines, "#%eof", ""]).encode()


async def settled(scene: Scene) -> Snapshot:
    """See that no lease, slot, lock, hold or space is left and all rules hold; give the state."""

    async def quiet() -> bool:
        # A worker that was killed last has left nobody behind who would look at the clock.
        await scene.store.tick()
        return not (await scene.store.status()).workers

    await eventually(quiet)
    state = await scene.store.snapshot()
    assert violations(state, scene.settings) == []
    assert await scene.store.check() == []
    assert (state.workers, state.inboxes, state.free, state.waiting) == ({}, {}, 0, 0)
    assert (state.holds, state.kept, state.returning, state.trash) == ({}, {}, [], {})
    assert state.space_used == 0, "all space was given back"
    assert [batch.id for batch in state.batches.values() if batch.locked(state.now)] == []
    assert list((scene.home / "shelf").iterdir()) == [], "each job has put back what it took"
    assert scene.lines("over") == [], "never was more space taken than there is"
    return state


def jobs_of(state: Snapshot, batch: str, rows: int) -> dict[int, Job]:
    """Give the jobs of a batch by row; there must be one for each, ended."""
    found: dict[str, Job] = {}
    for job in state.jobs.values():
        if job.batch == batch:
            key = decode_body(job.body)["key"]
            assert key not in found, f"{key} is there twice"
            assert (job.version, job.phase) == (1, Phase.ENDED), key
            found[key] = job
    assert found.keys() == {f"{batch}/{row}" for row in range(1, rows + 1)}, "each row is one job"
    return {row: found[f"{batch}/{row}"] for row in range(1, rows + 1)}


def assert_each_stage_counted_once(scene: Scene, jobs: dict[str, Job]) -> int:
    """Hold the log against the timelines: no finished stage began again. Gives how often cut ones did."""
    begins: dict[str, list[int]] = defaultdict(list)
    ends: dict[str, list[int]] = defaultdict(list)
    for line in scene.lines("begin", "end"):
        (begins if line.what == "begin" else ends)[line.key].append(line.at)
    again = 0
    for key, job in jobs.items():
        accepted = [run for run in job.timeline if not run.code]
        through = len(accepted)
        assert [run.stage for run in accepted] == list(range(1, through + 1)), f"{key}: {job.timeline}"
        before = 0
        for run in accepted:
            name = f"{key}@{INGEST[run.stage - 1]}"
            assert begins[name], f"{name} was never begun"
            assert max(begins[name]) <= run.end, f"{name} began again after it was finished"
            assert min(begins[name]) >= before, f"{name} began before the stage before it was finished"
            assert any(run.start <= at <= run.end for at in ends[name]), f"{name} was never done"
            again += len(begins[name]) - 1
            before = run.end
        if not job.code:
            assert through == len(INGEST), key
            assert job.result == encode_json(list(INGEST)), "each stage got what the one before returned"
    return again
