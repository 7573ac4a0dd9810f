"""The small bodies: of a move in line, a shorter duration, another priority, a reason, and a check."""

from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
)

from maitred.errors import InvalidJob
from maitred.wire.checks import said
from maitred.wire.faults import faults_of, whole

_LARGEST_EXACT = (1 << 53) - 1
NAME_BYTES = 256

Role = Literal["viewer", "submitter", "operator", "admin"]


def _encodable(text: str) -> str:
    text.encode()
    return text


def _short(text: str) -> str:
    if len(text.encode()) > NAME_BYTES or not all(map(str.isprintable, text)):
        raise said(f"must be printable text of at most {NAME_BYTES} bytes")
    return text


def _short_name(text: str) -> str:
    if not text:
        raise said("must be the name of a queue")
    return _short(text)


def _submitter(text: str) -> str:
    kind, _, id = text.partition(":")
    text.encode()
    if text != "*" and (kind not in ("user", "team") or not 1 <= len(id.encode()) <= NAME_BYTES):
        raise said("must be user:ID, team:ID or *")
    return text


class _Small(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class MoveBody(_Small):
    """Which place the caller saw; the move is refused if it is no longer that job's."""

    nonce: Annotated[Annotated[int, Field(ge=0, le=_LARGEST_EXACT)] | None, BeforeValidator(whole)] = None


class DurationBody(_Small):
    """How long a job may run from now on; what a queue allows is checked with its classes."""

    seconds: Annotated[Any, WithJsonSchema({"type": "number", "exclusiveMinimum": 0})]


class _Reasoned(_Small):
    reason: Annotated[str, Field(max_length=1000), AfterValidator(_encodable)] = ""


class CancelBody(_Reasoned):
    """Why a job is cancelled."""


class PauseBody(_Reasoned):
    """Why a queue is paused or resumed."""


class HoldBody(_Reasoned):
    """Why something is held, or goes on."""


class RetryBody(_Reasoned):
    """Why a failed job is tried again."""


class PriorityBody(_Small):
    """The priority that a waiting job shall have."""

    priority: Annotated[int, Field(ge=0, le=99), BeforeValidator(whole)]


class CheckBody(_Small):
    """Whether what is broken shall be put right."""

    repair: bool = False


class RotateBody(_Small):
    """For how many seconds more the secret that was good so far signs, and if there is a new key too."""

    keep: Annotated[float, Field(ge=0, le=30 * 86_400)] = 86_400.0
    new_key: bool | None = Field(
        None,
        description="Whether there is a new key too, and the one before is no longer good. If nothing is "
        "said there is, but for `local`, which has none.",
    )


class KeyBody(_Small):
    """A key that is to be made. Without `queues` it is good for all of them."""

    role: Annotated[Role, WithJsonSchema({"type": "string", "enum": list(get_args(Role))})]
    name: Annotated[str, AfterValidator(_short)] = Field("", description="What it is called in what is told.")
    queues: Annotated[list[Annotated[str, AfterValidator(_short_name)]], Field(max_length=1000)] = []
    submitters: Annotated[list[Annotated[str, AfterValidator(_submitter)]], Field(max_length=1000)] = Field(
        [],
        validate_default=True,
        description="For a submitter's key: `user:ID` or `team:ID`; `*` for all, as a gateway needs.",
    )
    expires_in: Annotated[float, Field(gt=0, le=10 * 366 * 86_400)] | None = Field(
        None, description="Seconds; null: it does not expire."
    )

    @field_validator("queues", mode="after")
    @classmethod
    def _not_for_an_admin(cls, queues: list[str], info: ValidationInfo) -> list[str]:
        if queues and info.data.get("role") == "admin":
            raise said("cannot be named for the role admin, whose key is good for all of them")
        return queues

    @field_validator("submitters", mode="after")
    @classmethod
    def _for_a_submitter_only(cls, submitters: list[str], info: ValidationInfo) -> list[str]:
        role = info.data.get("role")
        if role == "submitter" and not submitters:
            raise said("must be named for the role submitter: user:ID, team:ID, or * for all")
        if submitters and role not in ("submitter", None):
            raise said("can be named for the role submitter only")
        return submitters


class ReconcileBody(_Small):
    """Nothing yet: a queue is reconciled as a whole."""


Request = TypeVar("Request", bound=_Small)


def parse_request(model: type[Request], value: object) -> Request:
    """Check a small body; `InvalidJob` lists all its faults."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise InvalidJob(faults_of(error)) from None
