"""From a checked body to what the store is asked: the job's identity, its need, its band and its bytes."""

from maitred.core.ids import job_id
from maitred.core.job import COMMAND, Band, Order, Submitter
from maitred.core.settings import SECOND, Settings
from maitred.errors import Fault, InvalidJob, TooLarge
from maitred.service.moment import microseconds, seconds
from maitred.wire import HandlerRun, JobBody, delay_fault, encode_body, parse_body

HANDLER = "handler:"


def order_of(value: object, settings: Settings) -> Order:
    """Check a body against the contract and the queue's settings, and make it an order.

    Raises `InvalidJob` with all faults, or `TooLarge`.
    """
    body = _checked(value, seconds(settings.max_delay))
    config = encode_body(body)
    if len(config) > settings.max_body:
        raise TooLarge(len(config), settings.max_body)
    run = body.run
    return Order(
        id=job_id(body.key, body.response_url),
        submitter=Submitter(body.submitter.type, body.submitter.id),
        need=HANDLER + run.handler if isinstance(run, HandlerRun) else COMMAND,
        body=config,
        band=_band(body),
        priority=body.priority,
        delay=None if body.delay is None else round(body.delay * SECOND),
        expires_at=microseconds(body.expires_at) if body.expires_at else 0,
    )


def _checked(value: object, max_delay: float) -> JobBody:
    if not isinstance(value, JobBody):
        return parse_body(value, max_delay)
    # A body that was checked elsewhere was not checked for this queue.
    fault = None if value.immediate else delay_fault(value.delay, max_delay)
    if fault:
        raise InvalidJob([Fault("delay", fault)])
    return value


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
