"""How queues look, and lists of what is in them: tables for people."""

from maitred.cli.printing import (
    clock,
    hold_sentence,
    print_page,
    print_queue,
    say,
    say_more,
    who_of,
)
from maitred.cli.spans import span, starts_briefly
from maitred.wire import (
    CheckDocument,
    JobDocument,
    OthersJob,
    Page,
    ProfileDocument,
    QueueDocument,
    ReconcileDocument,
    RunningJob,
    SubmitterDocument,
    WorkerDocument,
)


def print_line(page: Page[JobDocument | OthersJob], queue: QueueDocument) -> None:
    """Print the queue in one line, and the first of those who wait."""
    print_queue(queue)
    if not page.items:
        return
    with_class = len(queue.classes) > 1
    with_start = any(isinstance(job, JobDocument) and starts_briefly(job.estimate) for job in page.items)
    some = [*(["class"] if with_class else []), *(["starts"] if with_start else [])]

    def cells(job: JobDocument | OthersJob) -> list[object]:
        its_class = [job.class_ or "elastic"] if with_class else []
        if isinstance(job, OthersJob):
            nothing = [""] if with_start else []
            return [job.position, "", "another", job.band, *its_class, *nothing, "", job.id]
        starts = [starts_briefly(job.estimate)] if with_start else []
        reason = job.waiting_for.text if job.waiting_for else ""
        return [job.position, job.key, who_of(job), job.band, *its_class, *starts, reason, job.id]

    print_page(page, [">#", "key", "submitter", "band", *some, "waits for", "id"], cells, "")


def print_jobs(page: Page[JobDocument | OthersJob]) -> None:
    """Print jobs in any state, a row for each."""

    def cells(job: JobDocument | OthersJob) -> list[object]:
        if isinstance(job, OthersJob):
            return ["", "another", job.state, "", "", job.id]
        state = job.state if job.phase in (None, job.state) else f"{job.state} ({job.phase})"
        return [job.key, who_of(job), state, job.code or "", clock(job.created_at), job.id]

    headings = ("key", "submitter", "state", "code", "created", "id")
    print_page(page, headings, cells, "There is no such job.")


def print_running(page: Page[RunningJob | OthersJob]) -> None:
    """Print what runs, a row for each."""

    def cells(job: RunningJob | OthersJob) -> list[object]:
        if isinstance(job, OthersJob):
            return ["", "another", job.class_ or "", "", "", job.id]
        time = f"{span(job.elapsed)} of {span(job.duration)}"
        return [job.key, who_of(job), job.class_ or "", time, job.worker, job.id]

    print_page(page, ("key", "submitter", "class", "time", "worker", "id"), cells, "Nothing runs.")


def print_queues(page: Page[QueueDocument]) -> None:
    """Print queues, a line for each."""
    for queue in page.items:
        print_queue(queue)
    say_more(page)
    if not page.items:
        say("There is no queue; `maitred up` and `maitred serve` make those of maitred.toml.")


def print_workers(page: Page[WorkerDocument]) -> None:
    """Print workers, a row for each."""

    def cells(worker: WorkerDocument) -> list[object]:
        slots = f"{worker.busy} of {worker.slots} busy{', draining' if worker.draining else ''}"
        lists = (", ".join(worker.serves), ", ".join(worker.sandbox))
        return [worker.name, slots, *lists, clock(worker.last_seen)]

    headings = ("worker", "slots", "serves", "enforces", "seen")
    print_page(page, headings, cells, "Nobody works here; `maitred work` starts a worker.")


def print_check(found: CheckDocument) -> None:
    """Print what a check found, a line for each."""
    for violation in found.violations:
        repaired = " (repaired)" if violation.repaired else ""
        say(f"{violation.code}: {violation.text}{repaired}")
    if not found.violations:
        say(f"{found.queue} is sound.")


def print_submitter(submitter: SubmitterDocument, who: str) -> None:
    """Print in one line whether a submitter is held, what it has in line, and how its next job is delayed."""
    held = "held" if submitter.held else "not held"
    delay = f", its next job is delayed by {span(submitter.next_delay)}" if submitter.next_delay else ""
    say(f"{who} is {held}: {len(submitter.jobs)} waiting{delay}.")


def print_profile(profile: ProfileDocument) -> None:
    """Print in one line whether a profile is held, by whom and why."""
    say(f"{profile.name} is {hold_sentence(profile.hold) if profile.hold else 'not held'}.")


def print_reconcile(done: ReconcileDocument) -> None:
    """Print what was done, a line for each."""
    for change in done.changes:
        say(f"{change.code}: {change.text}")
    if not done.changes:
        where = "its line and its ledger agree" if done.ledger else "its ledger is in the same store"
        say(f"Nothing to do for {done.queue}: {where}.")
