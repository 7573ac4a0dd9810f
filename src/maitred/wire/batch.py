"""The body of a batch: jobs that are submitted together, as a list, as a manifest, or one by one afterwards.

Types are as strict as in the body of a PUT. What a batch says of priority, class, profile and the like holds
for the rows of its manifest, and for those of its jobs that say nothing of it themselves.
"""

from typing import Annotated, Any, Literal, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
)

from maitred.errors import Fault, InvalidJob
from maitred.wire.allowed import Allowed
from maitred.wire.body import (
    CLASS_NAME,
    HANDLER_NAME,
    MAX_DURATION_SECONDS,
    ProfileName,
    SubmitterBody,
    class_of_the_queue,
    parse_body,
    within_the_last_cap,
)
from maitred.wire.checks import HttpUrl, JsonObject, Strict, encodable, said, text_of
from maitred.wire.faults import MOST_FAULTS, faults_of, whole

EXTERNAL_ID_BYTES = 256
PAYLOAD_NAME_BYTES = 2048
MOST_JOBS = 10_000
# Kept with a submission by the server: the key that sent it, and whether that is a submitter's.
SUBMITTED_BY, LIMITED = "submitted_by", "limited"

ManifestType = Literal["single-file", "object-manifest", "manifest-of-containers", "manifest-of-manifests"]
ResponseType = Literal["json", "xml", "turtle"]
SubmissionMode = Literal["add", "update", "reset"]

_MANIFEST_TYPES = ("single-file", "object-manifest", "manifest-of-containers", "manifest-of-manifests")
_RESPONSE_TYPES = ("json", "xml", "turtle")
_SUBMISSION_MODES = ("add", "update", "reset")
_DEFAULTS = ("submitter", "profile_name", "priority", "run")


def _one_of(*words: str) -> tuple[BeforeValidator, WithJsonSchema]:
    """Take one of these words, however it is written: `ManifestOfContainers` is `manifest-of-containers`."""
    by_letters = {_letters(word): word for word in words}

    def check(value: object) -> object:
        return by_letters.get(_letters(value), value) if isinstance(value, str) else value

    return BeforeValidator(check), WithJsonSchema({"type": "string", "enum": list(words)})


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text)).lower()


_Text = Annotated[str, AfterValidator(encodable)]


class Erc(Strict):
    """Who made what, when, and where it is: the kernel of a description."""

    who: _Text = ""
    what: _Text = ""
    when: _Text = ""
    where: _Text = ""


class RowRun(Strict):
    """What to run for each row of a manifest: its columns are added to `args`.

    A queue without stages needs the name of a handler; one with stages has a handler for each.
    """

    handler: (
        Annotated[
            str, Field(pattern=rf"^{HANDLER_NAME}\z", json_schema_extra={"pattern": f"^{HANDLER_NAME}$"})
        ]
        | None
    ) = None
    args: JsonObject = Field(default_factory=dict)

    @field_validator("handler", mode="before")
    @classmethod
    def _only_without_stages(cls, handler: object, info: ValidationInfo) -> object:
        allowed: Allowed | None = info.context
        if handler is not None and allowed and allowed.stages:
            raise said(f"cannot be sent: this queue has stages ({', '.join(allowed.stages)})")
        return handler


class BatchBody(Strict):
    """What a submission says of a batch."""

    submitter: SubmitterBody
    external_id: Annotated[str, text_of(EXTERNAL_ID_BYTES)] | None = Field(
        None, description="Names the batch: sent again by its submitter, it gives the batch that is there."
    )
    profile_name: ProfileName | None = None
    manifest_type: Annotated[ManifestType, *_one_of(*_MANIFEST_TYPES)] = "object-manifest"
    payload: _Text | None = Field(None, description="A manifest as text: Checkm, or CSV with a header.")
    payload_filename: Annotated[str, text_of(PAYLOAD_NAME_BYTES)] | None = Field(
        None,
        description="The address of a manifest, or of a single file; beside `payload`, any name for that.",
    )
    jobs: Annotated[list[dict[str, Any]], Field(max_length=MOST_JOBS)] | None = Field(
        None,
        description="Bodies as of a PUT; `submitter`, `profile_name`, `priority`, `class` or `duration`, "
        "`bulk` and `run` may be left to the batch.",
        json_schema_extra={"items": {"$ref": "#/components/schemas/JobBody"}},
    )
    response_type: Annotated[ResponseType, *_one_of(*_RESPONSE_TYPES)] = "json"
    submission_mode: Annotated[SubmissionMode, *_one_of(*_SUBMISSION_MODES)] = "add"
    erc: Erc | None = None
    response_url: HttpUrl | None = Field(None, description="Where its reports are sent.")
    run: RowRun | None = None
    priority: Annotated[int, Field(ge=0, le=99), BeforeValidator(whole)] = 5
    bulk: bool = False
    class_: (
        Annotated[str, Field(pattern=rf"^{CLASS_NAME}\z", json_schema_extra={"pattern": f"^{CLASS_NAME}$"})]
        | None
    ) = Field(None, alias="class", description="One of the queue's classes; not with `duration`.")
    duration: Annotated[float, Field(gt=0, le=MAX_DURATION_SECONDS)] | None = None
    seal: bool = Field(True, description="False: jobs can be added until it is sealed.")

    @property
    def expanding(self) -> bool:
        """Whether it has a payload or jobs that are to be put in."""
        return bool(self.jobs) or self.payload is not None or self.payload_filename is not None

    def job(self, index: int) -> dict[str, Any]:
        """Give the body of one of its jobs, with what that leaves to the batch."""
        return completed(vars(self), (self.jobs or [])[index])

    @field_validator("payload", mode="after")
    @classmethod
    def _no_single_file(cls, payload: str | None, info: ValidationInfo) -> str | None:
        if payload is not None and info.data.get("manifest_type") == "single-file":
            raise said("cannot be sent for a single file; its address is the payload_filename")
        return payload

    @field_validator("payload_filename", mode="after")
    @classmethod
    def _an_address_unless_it_names_a_payload(cls, name: str | None, info: ValidationInfo) -> str | None:
        # A payload that is not among the checked fields was sent, and is wrong.
        if name is not None and info.data.get("payload", "wrong") is None:
            try:
                _Address.model_validate({"url": name})
            except ValidationError:
                raise said("must be an http or https address, unless the payload is sent") from None
        return name

    @field_validator("jobs", mode="before")
    @classmethod
    def _one_source(cls, jobs: object, info: ValidationInfo) -> object:
        if jobs is None:
            return None
        for other in ("payload", "payload_filename"):
            if info.data.get(other, "wrong") is not None:
                raise said(f'cannot be sent together with "{other}"')
        return jobs

    @field_validator("run", mode="before")
    @classmethod
    def _an_object(cls, run: object) -> object:
        if run is not None and not isinstance(run, dict | RowRun):
            raise said('must be an object with "handler" and "args", or with "args" in a queue with stages')
        return run

    _a_class_of_the_queue = field_validator("class_", mode="before")(class_of_the_queue)
    _within_the_last_cap = field_validator("duration", mode="before")(within_the_last_cap)


class _Address(Strict):
    url: HttpUrl


def completed(batch: dict[str, Any], job: dict[str, Any]) -> dict[str, Any]:
    """Give a job's body with what it leaves to its batch."""
    body = {name: batch[name] for name in _DEFAULTS if batch.get(name) is not None}
    body = {name: _plain(value) for name, value in body.items()} | job
    if not {"class", "duration"} & job.keys():
        for name, field in (("class", "class_"), ("duration", "duration")):
            value = batch.get(field, batch.get(name))
            if value is not None:
                body[name] = value
    if batch.get("bulk") is True and "bulk" not in job and not job.get("immediate"):
        body["bulk"] = True
    return body


def _plain(value: object) -> object:
    return value.model_dump(exclude_unset=True) if isinstance(value, BaseModel) else value


def parse_batch(value: object, allowed: Allowed | None = None) -> BatchBody:
    """Check the body of a batch for a queue that allows this; `InvalidJob` lists all its faults."""
    if isinstance(value, BatchBody):
        value = value.model_dump(by_alias=True, exclude_unset=True)
    faults: list[Fault] = []
    body: BatchBody | None = None
    try:
        body = BatchBody.model_validate(value, context=allowed)
    except ValidationError as error:
        faults = faults_of(error)
    if body and allowed and (fault := _missing_handler(body, allowed)):
        faults.append(fault)
    if not any(fault.path.partition(".")[0] == "jobs" for fault in faults):
        faults += _job_faults(value, allowed, MOST_FAULTS - len(faults))
    if faults or body is None:
        raise InvalidJob(faults)
    return body


def read_batch(value: object) -> BatchBody:
    """Read a body that was checked when it came; `InvalidJob` if it cannot be read all the same.

    What is kept with it of who sent it is left out.
    """
    if isinstance(value, dict):
        value = {name: part for name, part in value.items() if name not in (SUBMITTED_BY, LIMITED)}
    try:
        return BatchBody.model_validate(value)
    except ValidationError as error:
        raise InvalidJob(faults_of(error)) from None


def _missing_handler(body: BatchBody, allowed: Allowed) -> Fault | None:
    rows = body.payload is not None or body.payload_filename is not None
    if allowed.stages or not rows or (body.run and body.run.handler):
        return None
    path = "run.handler" if body.run else "run"
    return Fault(path, "is required: it names the handler that each row of the payload is for")


def _job_faults(value: object, allowed: Allowed | None, most: int) -> list[Fault]:
    """Check each of the jobs as the body that it will be."""
    if not isinstance(value, dict) or not isinstance(value.get("jobs"), list):
        return []
    found: list[Fault] = []
    batch = cast("dict[str, Any]", value)
    # What is wrong in the batch itself is told there, not again in each of its jobs.
    shared = {"submitter", "profile_name", "priority", "run", "class", "duration", "bulk"}
    for index, job in enumerate(batch["jobs"]):
        if not isinstance(job, dict) or len(found) >= most:
            continue
        if "batch" in job:
            found.append(Fault(f"jobs.{index}.batch", "cannot be sent: it is in this batch"))
        body = {name: part for name, part in completed(batch, job).items() if name != "batch"}
        try:
            parse_body(body, allowed)
        except InvalidJob as error:
            found += [
                Fault(f"jobs.{index}.{fault.path}", fault.message)
                for fault in error.faults
                if not _inherited(fault.path, job, batch, shared)
            ]
    return found[:most]


def _inherited(path: str, job: dict[str, Any], batch: dict[str, Any], shared: set[str]) -> bool:
    field = path.partition(".")[0]
    return field in shared and field in batch and field not in job
