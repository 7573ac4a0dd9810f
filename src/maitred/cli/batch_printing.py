"""How batches look: tables for people, JSON for programs."""

from collections import Counter
from collections.abc import Sequence

import typer

from maitred.cli.exits import sentence_of
from maitred.cli.printing import (
    clock,
    console,
    holds_sentence,
    plain_row,
    print_page,
    print_pairs,
    say,
    table,
    who_of,
)
from maitred.errors import InvalidJob, MaitredError
from maitred.wire import BatchDocument, JobDocument, Page, ReportDocument, ReportRow

# In the order in which jobs go through them.
STATES = ("pending", "held", "processing", "completed", "failed", "deleted")
MOST_ROWS = 50


def print_batch(batch: BatchDocument) -> None:
    """Print one batch."""
    print_pairs(
        [
            ("id", batch.id),
            ("external id", batch.external_id),
            ("outcome", batch.outcome),
            ("submitter", who_of(batch)),
            ("profile", batch.profile_name),
            ("state", f"{batch.state}{'' if batch.sealed or batch.seal else ', open: jobs can be added'}"),
            ("holds", holds_sentence(batch.holds)),
            ("jobs", counts_sentence(batch.counts, sealed=batch.sealed)),
            ("message", batch.message),
            ("reports", _reports(batch)),
            ("created", clock(batch.created_at)),
            ("changed", clock(batch.modified_at)),
        ]
    )


def _reports(batch: BatchDocument) -> str | None:
    if not batch.sequence:
        return None
    return f"{batch.sequence}{', the last one still to be sent' if batch.unsent else ''}"


def counts_sentence(counts: dict[str, int], *, sealed: bool) -> str:
    """Say how many jobs are where."""
    said = [f"{counts[state]} {state}" for state in STATES if counts.get(state)]
    return ", ".join(said) or ("none" if sealed else "none yet")


def print_batches(page: Page[BatchDocument]) -> None:
    """Print batches, a line for each."""

    def cells(batch: BatchDocument) -> list[object]:
        jobs = counts_sentence(batch.counts, sealed=batch.sealed)
        created = clock(batch.created_at) or ""
        return [batch.id, batch.state, jobs, who_of(batch), batch.external_id or "", created]

    headings = ("id", "state", "jobs", "submitter", "external id", "created")
    print_page(page, headings, cells, "There is no such batch.")


def print_report(report: ReportDocument) -> None:
    """Print a report: how many of each, and what failed or was deleted, with its message."""
    print_pairs(
        [
            ("batch", report.batch),
            ("external id", report.external_id),
            ("report", f"{report.sequence}, {report.kind} of {clock(report.at)}"),
            ("state", report.state),
            ("message", report.message),
            ("completed", len(report.completed)),
            ("failed", len(report.failed)),
            ("deleted", len(report.deleted)),
        ]
    )
    _print_rows("failed", report.failed)
    _print_rows("deleted", report.deleted)


def _print_rows(title: str, rows: Sequence[ReportRow]) -> None:
    if not rows:
        return
    named = any(row.local_id for row in rows)
    found = table(title, *(["local id"] if named else []), "message", "id")
    for row in rows[:MOST_ROWS]:
        found.add_row(
            *plain_row([row.key, *([row.local_id or ""] if named else []), row.message or "", row.id])
        )
    console().print(found)
    if len(rows) > MOST_ROWS:
        typer.echo(f"and {len(rows) - MOST_ROWS} more; --json has all of them")


def answers_document(answers: Sequence[JobDocument | MaitredError]) -> dict[str, object]:
    """Give what became of each job that was sent, as the server told it."""
    return {"items": [_plain_answer(answer) for answer in answers]}


def any_refused(answers: Sequence[JobDocument | MaitredError]) -> bool:
    """Tell whether one of them was refused."""
    return any(isinstance(answer, MaitredError) for answer in answers)


def print_answers(where: str, answers: Sequence[JobDocument | MaitredError]) -> None:
    """Print what became of jobs that were sent: how many of each outcome, and each refusal."""
    outcomes = Counter(answer.outcome or "" for answer in answers if isinstance(answer, JobDocument))
    said = [f"{number} {outcome}" for outcome, number in outcomes.items()]
    refused = [(number, a) for number, a in enumerate(answers, 1) if isinstance(a, MaitredError)]
    if refused:
        said.append(f"{len(refused)} refused")
    say(f"{where}: {', '.join(said) or 'nothing to add'}.")
    for number, error in refused:
        say(f"job {number}: {sentence_of(error)}", err=True)


def _plain_answer(answer: JobDocument | MaitredError) -> object:
    if isinstance(answer, JobDocument):
        return answer.model_dump(mode="json", by_alias=True)
    faults = [fault._asdict() for fault in answer.faults] if isinstance(answer, InvalidJob) else None
    return {"type": f"urn:maitred:problem:{answer.code}", "detail": str(answer), "errors": faults}
