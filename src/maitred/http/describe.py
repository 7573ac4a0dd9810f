"""The description of the API: what each call takes and answers, problems included, for `/openapi.json`."""

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from maitred.core.ids import job_id
from maitred.http.answer import PROBLEM
from maitred.http.sse import EVENT_STREAM
from maitred.wire import (
    EVENTS,
    EVERYTHING,
    AuditEntry,
    BatchBody,
    BatchDocument,
    BatchReportEvent,
    BatchStateEvent,
    CancelBody,
    CheckBody,
    CheckDocument,
    DeliveryDocument,
    DurationBody,
    HoldBody,
    JobBody,
    JobDocument,
    KeyBody,
    KeyDocument,
    MoveBody,
    OthersJob,
    OutputDocument,
    Page,
    PauseBody,
    PriorityBody,
    Problem,
    ProfileDocument,
    QueueDocument,
    ReconcileBody,
    ReconcileDocument,
    ReportDocument,
    RetriedDocument,
    RetryBody,
    RotateBody,
    RunningJob,
    SubmitterDocument,
    WorkerDocument,
)

Schema = dict[str, Any]

_MODELS: tuple[type[BaseModel], ...] = (
    RetryBody,
    RetriedDocument,
    ReportDocument,
    ReconcileDocument,
    ReconcileBody,
    ProfileDocument,
    PriorityBody,
    HoldBody,
    BatchStateEvent,
    BatchReportEvent,
    BatchDocument,
    BatchBody,
    CancelBody,
    CheckBody,
    CheckDocument,
    DurationBody,
    JobBody,
    JobDocument,
    KeyBody,
    KeyDocument,
    MoveBody,
    OthersJob,
    OutputDocument,
    RotateBody,
    Page[BatchDocument],
    Page[DeliveryDocument],
    Page[KeyDocument],
    Page[AuditEntry],
    Page[JobDocument | OthersJob],
    Page[QueueDocument],
    Page[RunningJob | OthersJob],
    Page[WorkerDocument],
    PauseBody,
    Problem,
    QueueDocument,
    SubmitterDocument,
    *EVENTS.values(),
    *EVERYTHING.values(),
)

_names, _components = models_json_schema(
    [(model, "validation") for model in _MODELS], ref_template="#/components/schemas/{model}"
)

_PROBLEMS = {
    400: "The body is not JSON.",
    401: "A key is needed, and there is none, or it is not good.",
    403: "The key is not good for this; without keys, the Host or Origin is not this server's own.",
    404: "There is no such queue, job, batch or key.",
    409: "The state of the job or batch forbids it; nothing was changed.",
    413: "The body is larger than the queue allows.",
    422: "The request has faults; all of them are listed.",
    429: "The queue is full; `limit` says how many may wait. Or the key calls too often.",
    503: "The store does not answer, or the server has as many connections as it takes.",
}

EXAMPLE_BODY: Schema = {
    "key": "assignment-3/ada",
    "submitter": {"type": "user", "id": "ada"},
    "run": {"command": ["python3", "main.py"], "files": {"main.py": {"text": "print('hello')"}}},
    "metadata": {"course": "cs101"},
}


# What stands in paths: of the job and the batch that the examples make, in the queue that is always there.
_NAMES = {
    "queue": "default",
    "id": job_id(EXAMPLE_BODY["key"], None),
    "bid": "bid0000000000",
    "type": "user",
    "name": "report.txt",
}
_OTHER_NAMES = {"/keys/": {"id": "local"}, "/submitters/": {"id": "ada"}, "/profiles/": {"name": "cs101"}}

DESCRIPTION = """\
A fair job queue. Times are UTC in ISO 8601, durations are seconds, errors are problems (RFC 9457). Ids in
paths are percent-encoded.

**Keys.** Send yours as `Authorization: Bearer KEY`; `maitred keys create --role ROLE` makes one. While none
was made, whoever calls on this host needs none.

**Callbacks.** A job or a batch with a `response_url` tells that address what becomes of it. It gets a
POST of `{"type", "timestamp", "data"}`; the type is `job.started`, `job.requeued`, `job.ended` or
`batch.reported`, the data is the document of the job without `run`, or that of the batch with its
`report`. As Standard Webhooks has it, `webhook-signature` is `v1,` and the base64 of the HMAC-SHA256 of
`ID.TIMESTAMP.BODY`, with what `webhook-id` and `webhook-timestamp` say. The secret is the base64 after
`whsec_` in what `maitred keys secret` shows, or `keys create` for a key's own. In Python,
`maitred.webhooks.verify(secret, headers, body)` checks it. After a network error, 408, 429 or 5xx it is
sent again, with the same `webhook-id`.

"""

EXAMPLE_BATCH: Schema = {
    "submitter": {"type": "user", "id": "ada"},
    "external_id": "regrade-2026-11",
    "payload": "url,local_id\nhttp://example.org/1.zip,one\nhttp://example.org/2.zip,two\n",
    "run": {"handler": "grade", "args": {"assignment": 3}},
}


def ref(model: type[BaseModel]) -> Schema:
    """Refer to a model among the components."""
    return _names[model, "validation"]


def answers(good: dict[int, type[BaseModel] | Schema | None], *problems: int) -> dict[int | str, Schema]:
    """Describe the answers of a call: the good ones by status, and the problems it may give."""
    described: dict[int | str, Schema] = {}
    for status, shape in good.items():
        described[status] = {"description": HTTPStatus(status).phrase}
        if shape is not None:
            schema = shape if isinstance(shape, dict) else ref(shape)
            described[status]["content"] = {"application/json": {"schema": schema}}
    for status in sorted({*problems, 401, 403, 429, 503}):
        described[status] = {
            "description": _PROBLEMS[status],
            "content": {PROBLEM: {"schema": ref(Problem)}},
        }
    return described


def stream(events: Mapping[str, type[BaseModel]]) -> Schema:
    """Describe a stream by the data of its events."""
    event = {
        "type": "object",
        "required": ["event", "data"],
        "properties": {
            "event": {"enum": list(events)},
            "id": {"type": "string", "description": "Where to go on from, with `Last-Event-ID`."},
            "data": {"type": "string", "contentMediaType": "application/json"},
        },
        "x-events": {name: ref(model) for name, model in events.items()},
    }
    names = ", ".join(f"`{name}`" for name in events)
    return {
        "description": f"As `text/event-stream`: {names}.",
        "content": {EVENT_STREAM: {"schema": event}},
    }


def takes(schema: Schema, *, required: bool = True, example: object = None) -> Schema:
    """Describe the body of a call."""
    content: Schema = {"schema": schema}
    if example is not None:
        content["example"] = example
    return {"requestBody": {"required": required, "content": {"application/json": content}}}


def _name_examples(path: str, parameters: Iterable[Schema]) -> None:
    """Let each name in a path have an example."""
    others = next((names for part, names in _OTHER_NAMES.items() if part in path), {})
    for parameter in parameters:
        if parameter["in"] == "path":
            parameter["example"] = {**_NAMES, **others}[parameter["name"]]


def describe(app: FastAPI) -> None:
    """Let the app describe itself with the models above among the components."""

    def openapi() -> Schema:
        if app.openapi_schema is None:
            schema = get_openapi(
                title=app.title, version=app.version, description=app.description, routes=app.routes
            )
            parts = schema.setdefault("components", {}).setdefault("schemas", {})
            parts.update(_components["$defs"])
            for path, calls in schema["paths"].items():
                for call in calls.values():
                    _name_examples(path, call.get("parameters", ()))
            app.openapi_schema = schema
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]
