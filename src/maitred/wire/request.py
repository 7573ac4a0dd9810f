"""The small bodies: of a move in line, a shorter duration, another priority, a reason, and a check."""

from typing import Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    WithJsonSchema,
)

from maitred.errors import InvalidJob
from maitred.wire.faults import faults_of, whole

_LARGEST_EXACT = (1 << 53) - 1


def _encodable(text: str) -> str:
    text.encode()
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

    priority: Annotated[int, BeforeValidator(whole), Field(ge=0, le=99)]


class CheckBody(_Small):
    """Whether what is broken shall be put right."""

    repair: bool = False


class RotateBody(_Small):
    """For how many seconds more the secret that was good so far signs beside the new one."""

    keep: Annotated[float, Field(ge=0, le=30 * 86_400)] = 86_400.0


class ReconcileBody(_Small):
    """Nothing yet: a queue is reconciled as a whole."""


Request = TypeVar("Request", bound=_Small)


def parse_request(model: type[Request], value: object) -> Request:
    """Check a small body; `InvalidJob` lists all its faults."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise InvalidJob(faults_of(error)) from None
