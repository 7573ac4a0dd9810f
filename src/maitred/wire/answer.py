"""What all answers of the server share: how times are written, lists, and refusals.

Answers are typed documents for three readers: the OpenAPI description, the client and the Python API. The
server itself writes plain objects of the same shape, since checking its own answers would only cost time.
"""

from datetime import UTC, datetime
from typing import Annotated, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer

# JSON has microseconds always, as the server writes them, so that times can be compared as text.
Time = Annotated[
    datetime,
    PlainSerializer(lambda time: time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"), when_used="json"),
]


class Answer(BaseModel):
    """A newer server may say more than this client knows: that is no fault."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True)


class Who(Answer):
    """A submitter."""

    type: str
    id: str


class Hold(Answer):
    """One reason for which a job is held."""

    kind: str
    name: str
    by: str
    reason: str | None = None
    at: Time


Item = TypeVar("Item", bound=BaseModel)


class Page(Answer, Generic[Item]):
    """Part of a list: `next` is the cursor of the part after this one, null at the end."""

    items: list[Item]
    next: str | None
    total: int | None = Field(
        description="How many there are in all; null where too many had to be searched."
    )


class FaultEntry(Answer):
    """One thing wrong with a request."""

    path: str
    message: str


class Problem(Answer):
    """Why a request was refused, as RFC 9457 has it."""

    model_config = ConfigDict(
        extra="ignore",
        json_schema_extra={
            "examples": [
                {
                    "type": "urn:maitred:problem:unknown-job",
                    "title": "There is no such job",
                    "status": 404,
                    "detail": "queue 'grading' has no job 'nobody'",
                }
            ]
        },
    )

    type: str
    title: str
    status: int
    detail: str
    errors: list[FaultEntry] | None = None
    limit: int | None = Field(None, description="The limit that was reached, in the refusal of a full queue.")
