"""What goes out: paths and bodies as bytes. What cannot be sent is refused here, as the server would do it.

A command line may hold bytes that are no text, and Python's numbers know `nan`; neither can be said in a path
or in JSON, so no server could be asked about them.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any
from urllib.parse import quote

from maitred.errors import ConfigError, Fault, InvalidJob, UnknownBatch, UnknownJob, UnknownKey, UnknownQueue
from maitred.wire import JobBody

# How many jobs one call takes.
MOST_AT_ONCE = 1_000
# Names that a path cannot hold: on the way to the server it would become another path.
_NOT_IN_PATHS = ("", ".", "..")


def path_of(queue: str | None = None, kind: str = "", *names: str) -> str:
    """Give the path below the queues; `UnknownQueue`, `UnknownJob` or `UnknownBatch` for impossible names.

    `InvalidJob` if a name is no text.
    """
    if queue is None:
        return "/api/v1/queues"
    if queue in _NOT_IN_PATHS:
        raise UnknownQueue(queue)
    if kind == "jobs" and names and names[0] in _NOT_IN_PATHS:
        raise UnknownJob(queue, names[0])
    if kind == "batches" and names and names[0] in _NOT_IN_PATHS:
        raise UnknownBatch(queue, names[0])
    parts = [part for part in (queue, kind, *names) if part]
    _refuse_unsayable({"queue": queue, "id": "".join(names)})
    return "/".join(["/api/v1/queues", *map(_segment, parts)])


def key_path(*names: str) -> str:
    """Give the path below the keys; `UnknownKey` for a name that a path cannot hold."""
    if names and names[0] in _NOT_IN_PATHS:
        raise UnknownKey(names[0])
    _refuse_unsayable({"id": "".join(names)})
    return "/".join(["/api/v1/keys", *map(_segment, names)])


def key_header(key: str | None) -> dict[str, str]:
    """Give the header with an API key; `ConfigError` for what cannot be one."""
    if not key:
        return {}
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise ConfigError("The API key is not one: it has only letters, digits, - and _.")
    return {"authorization": f"Bearer {key}"}


def plain_job(job: JobBody | Mapping[str, Any]) -> Any:
    """Give a job's body as JSON has it, without what is as it would be anyway."""
    if isinstance(job, JobBody):
        return job.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return dict(job)


def in_parts(jobs: Iterable[JobBody | Mapping[str, Any]]) -> Iterator[list[JobBody | Mapping[str, Any]]]:
    """Give jobs in lists of as many as one call takes."""
    rest = iter(jobs)
    while part := list(islice(rest, MOST_AT_ONCE)):
        yield part


def json_of(body: object) -> bytes:
    """Give a body as JSON; `InvalidJob` with each part of it that JSON cannot say."""
    try:
        return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except ValueError:
        _refuse_unsayable(body)
        raise


def query_of(query: Mapping[str, str]) -> dict[str, str]:
    """Give the parameters of a query; `InvalidJob` with each that is no text."""
    _refuse_unsayable(query)
    return dict(query)


def _segment(name: str) -> str:
    # A dot is encoded where it would be the way up.
    return name.replace(".", "%2E") if name in _NOT_IN_PATHS else quote(name, safe="")


def _refuse_unsayable(value: object) -> None:
    if faults := list(_unsayable(value, ())):
        raise InvalidJob(faults)


def _unsayable(value: object, path: tuple[str, ...]) -> Iterator[Fault]:
    where = _escaped(".".join(path))
    if isinstance(value, str) and _escaped(value) != value:
        yield Fault(where, "must be Unicode text")
    elif isinstance(value, float) and not math.isfinite(value):
        yield Fault(where, "must be a finite number")
    elif isinstance(value, Mapping):
        for name, part in value.items():
            if _escaped(str(name)) != str(name):
                yield Fault(where, "has a name that is not Unicode text")
            yield from _unsayable(part, (*path, str(name)))
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from _unsayable(part, (*path, str(index)))


def _escaped(text: str) -> str:
    return text.encode(errors="backslashreplace").decode()
