"""The body of a PUT: what a caller may say of a job, with every limit of the contract.

Types are strict: `"5"` is no number and `1` is not true. A field that nobody knows is a fault, so that a
misspelt one is not passed over in silence. `run` is told apart by its key, so that one fault is one entry.
"""

from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from maitred.errors import Fault, InvalidJob
from maitred.wire.allowed import Allowed
from maitred.wire.checks import Argument, HttpUrl, JsonObject, Strict, encodable, said, text_of
from maitred.wire.faults import faults_of, whole
from maitred.wire.files import Artifacts, Files
from maitred.wire.script import Script

KEY_BYTES = 512
SUBMITTER_BYTES = 256
PROFILE_BYTES = 256
BATCH_CHARACTERS = 64
MAX_DELAY_SECONDS = 2_592_000
MAX_ABANDON_SECONDS = 2_592_000
MAX_DURATION_SECONDS = 2_592_000
CLASS_NAME = r"[a-z0-9_-]{1,32}"
HANDLER_NAME = r"[A-Za-z_][A-Za-z0-9_.:-]{0,127}"
# Scripts count in doubles, which are exact for microseconds up to the year 2255.
_LAST_EXPIRY = datetime(2200, 1, 1, tzinfo=UTC)
_FIRST_EXPIRY = datetime(1970, 1, 1, tzinfo=UTC)


def _moment(value: object) -> object:
    """Let a time be text, as in JSON; numbers are refused, since nobody can tell their unit."""
    if isinstance(value, str) and "T" in value.upper():
        return datetime.fromisoformat(value.upper())
    return value


def _in_range(moment: datetime) -> datetime:
    if not _FIRST_EXPIRY < moment < _LAST_EXPIRY:
        raise ValueError
    return moment


class SubmitterBody(Strict):
    """The user or team that a job belongs to."""

    type: Literal["user", "team"]
    id: Annotated[str, text_of(SUBMITTER_BYTES), Field(json_schema_extra={"minLength": 1})]


class HandlerRun(Strict):
    """Run a Python function that workers registered under this name, with these arguments."""

    handler: Annotated[
        str, Field(pattern=rf"^{HANDLER_NAME}\z", json_schema_extra={"pattern": f"^{HANDLER_NAME}$"})
    ]
    args: JsonObject = Field(default_factory=dict)


class CommandRun(Strict):
    """Run a program with these arguments and files beside it, and keep the files that `artifacts` names."""

    command: Annotated[list[Argument], Field(min_length=1, max_length=4096)]
    files: Files = Field(default_factory=dict)
    artifacts: Artifacts = Field(default_factory=list)


class ScriptRun(Strict):
    """Run programs one after the other in the same directory, each as the ends of those before it say."""

    script: Script
    files: Files = Field(default_factory=dict)
    artifacts: Artifacts = Field(default_factory=list)


class StageRun(Strict):
    """Go through the queue's stages with these arguments; only for a queue that has stages."""

    args: JsonObject


_KINDS = {key: f"kind={key}" for key in ("handler", "command", "script", "args")}


def _known_profile(name: str, info: ValidationInfo) -> str:
    allowed: Allowed | None = info.context
    if allowed and (fault := allowed.profile_fault(name)):
        raise said(fault)
    return name


ProfileName = Annotated[str, text_of(PROFILE_BYTES), AfterValidator(_known_profile)]


def _kind_of_run(run: object) -> str | None:
    """Tell runs apart by the first of these keys that they have."""
    if isinstance(run, Strict):
        run = vars(run)
    if isinstance(run, dict):
        for key, kind in _KINDS.items():
            if key in run:
                return kind
    return None


def class_of_the_queue(name: object, info: ValidationInfo) -> object:
    """Check that a class is one of the queue's."""
    allowed: Allowed | None = info.context
    if allowed and name is not None and (fault := allowed.class_fault(name)):
        raise said(fault)
    return name


def within_the_last_cap(duration: object, info: ValidationInfo) -> object:
    """Check that a duration is sent without a class, and that one of the queue's classes holds it."""
    allowed: Allowed | None = info.context
    if duration is None:
        return None
    # A class that is not among the checked fields was sent, and is wrong.
    if info.data.get("class_", "wrong") is not None:
        raise said(allowed.both_fault() if allowed else 'cannot be sent together with "class"')
    if allowed and (fault := allowed.duration_fault(duration)):
        raise said(fault)
    return duration


class JobBody(Strict):
    """What a PUT says of a job."""

    key: Annotated[str, text_of(KEY_BYTES), Field(json_schema_extra={"minLength": 1})]
    submitter: SubmitterBody
    run: Annotated[
        Annotated[HandlerRun, Tag("kind=handler")]
        | Annotated[CommandRun, Tag("kind=command")]
        | Annotated[ScriptRun, Tag("kind=script")]
        | Annotated[StageRun, Tag("kind=args")],
        Discriminator(_kind_of_run),
    ]
    response_url: HttpUrl | None = None
    immediate: bool = False
    delay: Annotated[float, Field(ge=0, le=MAX_DELAY_SECONDS)] | None = None
    priority: Annotated[int, Field(ge=0, le=99), BeforeValidator(whole)] = 5
    bulk: bool = False
    class_: (
        Annotated[str, Field(pattern=rf"^{CLASS_NAME}\z", json_schema_extra={"pattern": f"^{CLASS_NAME}$"})]
        | None
    ) = Field(None, alias="class", description="One of the queue's classes; not with `duration`.")
    duration: Annotated[float, Field(gt=0, le=MAX_DURATION_SECONDS)] | None = Field(
        None,
        description="Seconds, at most the last class's cap. A job with neither is elastic.",
    )
    batch: (
        Annotated[str, Field(min_length=1, max_length=BATCH_CHARACTERS), AfterValidator(encodable)] | None
    ) = Field(None, description="The id of an open batch of this queue that the job is added to.")
    profile_name: ProfileName | None = None
    metadata: dict[Annotated[str, AfterValidator(encodable)], Annotated[str, AfterValidator(encodable)]] = (
        Field(default_factory=dict)
    )
    expires_at: Annotated[AwareDatetime, BeforeValidator(_moment), AfterValidator(_in_range)] | None = None
    abandon_after: Annotated[float, Field(gt=0, le=MAX_ABANDON_SECONDS)] | None = Field(
        None, description="Seconds; the job is cancelled when nobody has watched its events for so long."
    )

    @field_validator("run", mode="before")
    @classmethod
    def _a_run_of_the_queue(cls, run: object, info: ValidationInfo) -> object:
        allowed: Allowed | None = info.context
        if allowed and (fault := allowed.run_fault(staged=_kind_of_run(run) == "kind=args")):
            raise said(fault)
        return run

    @field_validator("delay", mode="after")
    @classmethod
    def _within_the_queues_limit(cls, delay: float | None, info: ValidationInfo) -> float | None:
        allowed: Allowed | None = info.context
        if allowed and not info.data.get("immediate") and (fault := allowed.delay_fault(delay)):
            raise said(fault)
        return delay

    @field_validator("bulk", mode="after")
    @classmethod
    def _not_both(cls, bulk: bool, info: ValidationInfo) -> bool:
        # A check of the whole body would be passed over where another field has a fault.
        if bulk and info.data.get("immediate"):
            raise said('cannot be true together with "immediate"')
        return bulk

    _a_class_of_the_queue = field_validator("class_", mode="before")(class_of_the_queue)
    _within_the_last_cap = field_validator("duration", mode="before")(within_the_last_cap)


def parse_body(value: object, allowed: Allowed | None = None) -> JobBody:
    """Check the body of a PUT for a queue that allows this; `InvalidJob` lists all its faults."""
    try:
        return JobBody.model_validate(value, context=allowed)
    except ValidationError as error:
        raise InvalidJob(faults_of(error)) from None


def check_body(body: JobBody, allowed: Allowed) -> None:
    """Check a body that was made elsewhere for this queue; `InvalidJob` lists all its faults."""
    found = {
        "run": allowed.run_fault(staged=isinstance(body.run, StageRun)),
        "delay": None if body.immediate else allowed.delay_fault(body.delay),
        "class": None if body.class_ is None else allowed.class_fault(body.class_),
        "duration": None if body.duration is None else allowed.duration_fault(body.duration),
        "profile_name": None if body.profile_name is None else allowed.profile_fault(body.profile_name),
    }
    if faults := [Fault(path, message) for path, message in found.items() if message]:
        raise InvalidJob(faults)
