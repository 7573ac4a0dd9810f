"""What the nodes of the tree hold: compact JSON that other readers of the layout know, and what is only ours.

Status names are Capitalised in JSON and lower-case in paths. A node of more than about a megabyte would drop
the connection: what is too large is refused before it is sent, and a message is cut.
"""

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from maitred.core.job import Submitter
from maitred.errors import TooLarge
from maitred.store.zookeeper.tree import Layout

NODE_LIMIT = 768 * 1024
MESSAGE_LIMIT = 4_096
NO_IDENTIFIERS = b'{"primary_id":null,"local_id":[]}'
_encoder = msgspec.json.Encoder()
_BODY_APART = ("key", "response_url")
_PLAIN_FIELDS = ("run", "metadata")


class Reason(msgspec.Struct, frozen=True, omit_defaults=True):
    """One hold as the tree keeps it."""

    kind: str
    name: str
    by: str = ""
    reason: str = ""
    at: int = 0


class Standing(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The `place` of a job: all that is needed to put it in line again, and what became of it in its stage.

    `stage` is the number of the stage at which it runs or waits, 0 before the first. `data` is what the stage
    before handed on, or the result. `newer` is the job's next version in its batch, if there is one. `write`
    is the token of the last change, by which the one who made it knows it again; `run` that of the run which
    may end its stage. `extra` is what else the body had, `body` the whole of one that is no JSON object.
    """

    id: str = ""
    key: str = ""
    response_url: str | None = None
    version: int = 1
    level: int = msgspec.field(default=1, name="class")
    elastic: bool = True
    duration: int = 0
    need: str = ""
    band: int = 2
    release: int = 0
    arrival: int = 0
    created_at: int = 0
    modified_at: int = 0
    expires_at: int = 0
    abandon: int = 0
    exempt: bool = False
    holds: tuple[Reason, ...] = ()
    attempt: int = 0
    stage: int = 0
    data: bytes = b""
    code: str = ""
    message: str = ""
    label: bytes = b""
    reported: str = ""
    newer: str = ""
    write: str = ""
    run: str = ""
    extra: dict[str, Any] = {}
    body: bytes = b""


class Expansion(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What a batch knows of itself beyond the layout's fields: how far it is expanded, and reported.

    `rows` counts the jobs that came in. One that is `sealing` is sealed when it is expanded. `write` is the
    token of the last change.
    """

    rows: int = 0
    sealed: bool = False
    sealing: bool = True
    expanding: bool = False
    external_id: str = ""
    submitter: str = ""
    profile: str = ""
    created_at: int = 0
    modified_at: int = 0
    fault: str = ""
    sequence: int = 0
    unsent: bool = False
    tries: int = 0
    try_at: int = 0
    hold: Reason | None = None
    write: str = ""


_standing = msgspec.json.Decoder(Standing)
_expansion = msgspec.json.Decoder(Expansion)


def pack(value: object) -> bytes:
    """Write compact JSON; TooLarge if no node should hold it."""
    return guarded(_encoder.encode(value))


def guarded(data: bytes) -> bytes:
    """Give data back that a node may hold; TooLarge otherwise."""
    if len(data) > NODE_LIMIT:
        raise TooLarge(len(data), NODE_LIMIT)
    return data


def read_object(data: bytes) -> dict[str, Any]:
    """Read a JSON object that somebody wrote; ValueError if it is not one."""
    value = json.loads(data)
    if not isinstance(value, dict):
        raise ValueError("it is no JSON object")  # noqa: TRY004 - one kind of fault for whoever reads
    return value


def read_standing(data: bytes) -> Standing:
    """Read a job's place; ValueError if it cannot be read."""
    return _standing.decode(data)


def read_expansion(data: bytes) -> Expansion:
    """Read what a batch knows of itself; ValueError if it cannot be read."""
    return _expansion.decode(data)


def cut(message: str) -> str:
    """Keep of a message what a person reads; the rest is only counted."""
    kept = message[:MESSAGE_LIMIT].encode("utf-8", "backslashreplace").decode()
    return kept if len(message) <= MESSAGE_LIMIT else f"{kept}… ({len(message)} characters)"


def capitalised(state: str) -> str:
    """Write a state as JSON has it: `Pending`, `UpdateReporting`."""
    return "".join(part[:1].upper() + part[1:] for part in state.split("-"))


def read_state(name: object, known: Iterable[str]) -> str:
    """Read a state that was written Capitalised, among those that are known; ValueError if it is none."""
    if isinstance(name, str):
        for state in known:
            if name in (state, capitalised(state)) or name.lower() == state.replace("-", ""):
                return state
    raise ValueError(f"{name!r} is no state")


def write_time(layout: Layout, at: int) -> str:
    """Write a time in microseconds as the layout has it."""
    seconds, rest = divmod(at, 1_000_000)
    moment = datetime.fromtimestamp(seconds, UTC)
    if layout.local_time:
        return moment.astimezone().strftime("%Y-%m-%d %H:%M:%S %z")
    return f"{moment.isoformat()[:19]}.{rest:06d}Z"


def read_time(text: object) -> int:
    """Read a time of either layout in microseconds; 0 if it is none."""
    if not isinstance(text, str):
        return 0
    try:
        moment = datetime.fromisoformat(re.sub(r" ([+-])", r"\1", text.strip()))
    except ValueError:
        return 0
    return round((moment if moment.tzinfo else moment.astimezone()).timestamp() * 1_000_000)


def job_status(
    layout: Layout, state: str, *, last: str | None, retries: int, at: int, message: str = ""
) -> dict[str, Any]:
    """Give the `status` of a job."""
    status: dict[str, Any] = {
        "status": capitalised(state),
        "last_successful_status": capitalised(last) if last else None,
        layout.modified: write_time(layout, at),
        "retry_count": retries,
    }
    return status | ({"message": message} if layout.says_message else {})


def batch_status(layout: Layout, state: str, at: int, message: str = "") -> dict[str, Any]:
    """Give the `status` of a batch."""
    status = {"status": capitalised(state), "last_modified": write_time(layout, at)}
    return status | ({"message": message} if layout.says_message else {})


def submission(layout: Layout, bid: str, sent: bytes, expansion: Expansion) -> bytes:
    """Give the `submission` of a batch: the layout's fields, and what was sent, verbatim."""
    body = _object_or_none(sent) or {}
    erc = body.get("erc")
    fields = {f"erc_{name}": value for name, value in erc.items()} if isinstance(erc, dict) else {}
    fields |= {name: value for name, value in body.items() if name in layout.submission}
    fields |= {
        "batchID": expansion.external_id or bid,
        "profile_name": expansion.profile,
        "submitter": expansion.submitter,
        "type": body.get("manifest_type"),
    }
    return pack({name: fields.get(name) for name in layout.submission} | _kept_text("sent", sent))


def read_submission(data: bytes) -> bytes:
    """Give what was sent, verbatim; of a batch that another program made, what that wrote."""
    value = _object_or_none(data) or {}
    return _given_text("sent", value) if {"sent", "sent_bytes"} & value.keys() else data


def configuration(layout: Layout, bid: str, submitter: str, profile: str, body: bytes) -> bytes:
    """Give the `configuration` of a job: the layout's fields from what it runs with, `run` and metadata."""
    content = _object_or_none(body) or {}
    run = content.get("run")
    args = run.get("args") if isinstance(run, dict) else None
    fields = dict(args) if isinstance(args, dict) else {}
    fields |= {"batch_id": bid, "profile_name": profile, "submitter": submitter}
    kept = {name: content[name] for name in _PLAIN_FIELDS if name in content}
    return pack({name: fields.get(name) for name in layout.configuration} | kept)


def stand_body(standing: Standing, body: bytes) -> Standing:
    """Note in a job's place what of its body is not in the configuration."""
    content = _object_or_none(body)
    if content is None:
        return msgspec.structs.replace(standing, body=body)
    rest = {name: content[name] for name in content if name not in (*_BODY_APART, *_PLAIN_FIELDS)}
    return msgspec.structs.replace(
        standing, key=content.get("key", ""), response_url=content.get("response_url"), extra=rest
    )


def read_body(standing: Standing, configuration: Mapping[str, Any]) -> bytes:
    """Give the body of a job again."""
    if standing.body:
        return standing.body
    body: dict[str, Any] = {"key": standing.key} if standing.key else {}
    if standing.response_url is not None:
        body["response_url"] = standing.response_url
    body |= {name: configuration[name] for name in _PLAIN_FIELDS if name in configuration}
    return _encoder.encode(body | standing.extra)


def read_submitter(text: object) -> Submitter:
    """Read a submitter; one that another program wrote is a user's name."""
    if isinstance(text, str) and text.partition(".")[0] in ("user", "team") and "." in text:
        return Submitter.read(text)
    return Submitter("user", text if isinstance(text, str) else "")


def status_report(report: bytes) -> bytes | None:
    """Give the `status-report` of a batch, whole; None if it is too large for one node."""
    content = _object_or_none(report)
    if content is None:
        data = _encoder.encode({"failed_jobs": [], **_kept_text("sent", report)})
    else:
        rest = {name: value for name, value in content.items() if name != "failed"}
        data = _encoder.encode({"failed_jobs": content.get("failed", []), **rest})
    return data if len(data) <= NODE_LIMIT else None


def short_report(report: bytes, sequence: int, parts: int) -> bytes:
    """Give the `status-report` that stands for a report kept in so many parts."""
    content = _object_or_none(report) or {}
    counts = {name: len(content.get(name, ())) for name in ("completed", "failed", "deleted")}
    failed = [row.get("id") if isinstance(row, dict) else row for row in content.get("failed", ())[:1_000]]
    head = {name: content[name] for name in ("sequence", "kind", "at") if name in content}
    told: dict[str, Any] = {"failed_jobs": failed, "counts": counts, "of": sequence, "parts": parts}
    return pack(told | head)


def read_report(data: bytes) -> bytes | tuple[int, int]:
    """Give the report again, or the sequence and number of the parts that it is kept in."""
    content = read_object(data)
    if "parts" in content:
        return int(content["of"]), int(content["parts"])
    if {"sent", "sent_bytes"} & content.keys():
        return _given_text("sent", content)
    if "sequence" not in content:
        return data
    failed = content.pop("failed_jobs", [])
    return _encoder.encode(content | {"failed": failed})


def _object_or_none(data: bytes) -> dict[str, Any] | None:
    try:
        return read_object(data)
    except (ValueError, RecursionError):
        return None


def _kept_text(name: str, data: bytes) -> dict[str, str]:
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        return {f"{name}_bytes": b64encode(data).decode()}


def _given_text(name: str, content: Mapping[str, Any]) -> bytes:
    return str(content[name]).encode() if name in content else b64decode(content[f"{name}_bytes"])
