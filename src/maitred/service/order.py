"""From a checked body to what the store is asked: the job's identity, need, band, class and bytes."""

from maitred.core.classes import level_for
from maitred.core.ids import job_id
from maitred.core.job import COMMAND, Band, Order, Submitter
from maitred.core.settings import SECOND, Settings
from maitred.errors import Fault, InvalidJob, TooLarge
from maitred.service import tracing
from maitred.service.keyring import LOCAL
from maitred.service.moment import microseconds, seconds
from maitred.wire import (
    Allowed,
    CommandRun,
    HandlerRun,
    JobBody,
    ScriptRun,
    check_body,
    encode_body,
    encode_json,
    parse_body,
)

HANDLER = "handler:"


def order_of(value: object, settings: Settings, allowed: Allowed, by: str = LOCAL) -> Order:
    """Check a body against the contract and what the queue allows by its settings, and make it an order.

    `by` is the key of whoever submits it. Raises `InvalidJob` with all faults, or `TooLarge`.
    """
    body = _checked(value, allowed)
    config = encode_body(body, by, tracing.under_way())
    if len(config) > settings.max_body:
        raise TooLarge(len(config), settings.max_body)
    level, length = _level(body, settings)
    return Order(
        id=job_id(body.key, body.response_url),
        submitter=Submitter(body.submitter.type, body.submitter.id),
        need=_need(body, settings),
        body=config,
        band=_band(body),
        priority=body.priority,
        level=level or 1,
        elastic=level is None,
        duration=length,
        delay=None if body.delay is None else round(body.delay * SECOND),
        expires_at=microseconds(body.expires_at) if body.expires_at else 0,
        batch=body.batch or "",
        profile=body.profile_name or "",
        # Without keys whoever asks is an operator, and jobs of an operator's batch neither wait nor count.
        exempt=body.batch is not None,
        label=label_of(body) if body.batch else b"",
        callback=body.response_url is not None,
        abandon=0 if body.abandon_after is None else duration_of(body.abandon_after),
    )


def label_of(body: JobBody) -> bytes:
    """Give what the report of a batch keeps of a job: its key, and the name that its submitter gave it."""
    args = {} if isinstance(body.run, CommandRun | ScriptRun) else body.run.args
    local_id = args.get("local_id")
    return encode_json({"key": body.key, "local_id": local_id if isinstance(local_id, str) else None})


def allowed_by(settings: Settings) -> Allowed:
    """Give what a queue with these settings allows beyond the contract."""
    classes = tuple((each.name, seconds(each.cap)) for each in settings.levels)
    stages = settings.stages if settings.staged else ()
    return Allowed(seconds(settings.max_delay), classes, stages, settings.profiles)


def duration_of(length: float) -> int:
    """Give the microseconds of a duration that is asked for; 0 would be no duration at all."""
    return max(1, round(length * SECOND))


def _checked(value: object, allowed: Allowed) -> JobBody:
    if not isinstance(value, JobBody):
        return parse_body(value, allowed)
    # A body that was checked elsewhere was not checked for this queue.
    check_body(value, allowed)
    return value


def _need(body: JobBody, settings: Settings) -> str:
    """Name what a worker must serve to run the job; with stages, the first one."""
    if settings.staged:
        return settings.need(1)
    return HANDLER + body.run.handler if isinstance(body.run, HandlerRun) else COMMAND


def _level(body: JobBody, settings: Settings) -> tuple[int | None, int]:
    """Give the class that is asked for and the duration; 0 is the cap of the class, no class is elastic."""
    if body.duration is not None:
        length = duration_of(body.duration)
        return level_for(settings.levels, length), length
    if body.class_ is None:
        return None, 0
    names = [each.name for each in settings.levels]
    return names.index(body.class_) + 1, 0


def _band(body: JobBody) -> Band:
    if body.immediate:
        return Band.IMMEDIATE
    return Band.BULK if body.bulk else Band.SCHEDULED


def read_submitter(text: str) -> Submitter:
    """Read `user:7`; `InvalidJob` at `submitter` if it is not like that."""
    kind, _, name = text.partition(":")
    if kind not in ("user", "team") or not name:
        raise InvalidJob([Fault("submitter", "must be user:ID or team:ID")])
    return Submitter(kind, name)
