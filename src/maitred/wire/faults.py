"""Faults in plain words: one entry for each thing that is wrong, with the path to it.

The checks are pydantic's; the words are ours. A field's rule is said the same way whatever broke it: a
priority of `"5"`, `5.5` and `500` all get "must be a whole number from 0 to 99".
"""

from collections.abc import Iterable, Mapping

from pydantic_core import ErrorDetails, ValidationError

from maitred.errors import Fault

_KINDS = {
    "run": ("kind=handler", "kind=command", "kind=script", "kind=args"),
    "cmd": ("kind=list", "kind=text"),
}
# A body of a megabyte can be wrong in a hundred thousand places; nobody reads past the first hundred.
MOST_FAULTS = 100

RULES: Mapping[str, str] = {
    "": "must be an object",
    "key": "must be text of 1 to 512 bytes in UTF-8",
    "submitter": 'must be an object with "type" and "id"',
    "submitter.type": 'must be "user" or "team"',
    "submitter.id": "must be text of 1 to 256 bytes in UTF-8",
    "response_url": "must be an http or https address of at most 2048 characters",
    "delay": "must be a number of seconds from 0 to 2592000",
    "priority": "must be a whole number from 0 to 99",
    "immediate": "must be true or false",
    "bulk": "must be true or false",
    "class": "must be the name of one of the queue's classes",
    "duration": "must be a number of seconds above 0, at most the last class's cap",
    "run": 'must be an object with "handler", "command" or "script"',
    "run.handler": "must be a name of at most 128 letters, digits, _, ., : and -, with a letter or _ first",
    "run.args": "must be an object",
    "run.command": "must be a list of 1 to 4096 texts, the program first",
    "run.script": "must be a list of steps",
    "run.files": "must be an object of at most 1000 files by name",
    "run.artifacts": "must be a list of at most 100 relative paths",
    "batch": "must be the id of a batch, of 1 to 64 characters",
    "profile_name": "must be text of 1 to 256 bytes in UTF-8",
    "external_id": "must be text of 1 to 256 bytes in UTF-8",
    "payload": "must be text: a manifest",
    "payload_filename": "must be text of 1 to 2048 bytes in UTF-8",
    "jobs": "must be a list of at most 10000 bodies of jobs",
    "manifest_type": (
        "must be single-file, object-manifest, manifest-of-containers or manifest-of-manifests"
    ),
    "response_type": "must be json, xml or turtle",
    "submission_mode": "must be add, update or reset",
    "erc": 'must be an object with "who", "what", "when" and "where"',
    "seal": "must be true or false",
    "metadata": "must be an object of texts",
    "expires_at": "must be a time with its zone, such as 2026-11-15T20:55:00Z, from 1970 to 2199",
    "abandon_after": "must be a number of seconds above 0, at most 2592000",
    "nonce": "must be the whole number that a document gave as its nonce",
    "repair": "must be true or false",
    "reason": "must be text of at most 1000 characters",
    "role": "must be viewer, submitter, operator or admin",
    "name": "must be printable text of at most 256 bytes",
    "queues": "must be a list of at most 1000 names of queues",
    "submitters": "must be a list of at most 1000 of user:ID, team:ID or *",
    "expires_in": "must be a number of seconds above 0, at most 10 years",
    "keep": "must be a number of seconds from 0 to 2592000",
    "new_key": "must be true or false",
    "session": "must be the text by which a session was named when it started",
    "received": "must be a whole number of bytes",
    "terminal": "must be two whole numbers from 1 to 1000: columns and rows",
    "resize": "must be two whole numbers from 1 to 1000: columns and rows",
}


def whole(value: object) -> object:
    """Let a whole number be written as `5.0`: JSON has one kind of number, and some writers add the point."""
    return int(value) if type(value) is float and value.is_integer() else value


def faults_of(error: ValidationError, rules: Mapping[str, str] = RULES) -> list[Fault]:
    """Give the faults that pydantic found, in its order, each path once."""
    found: dict[str, str] = {}
    for detail in error.errors(include_url=False):
        path = dotted(detail["loc"])
        found.setdefault(path, _sentence(path, detail, rules))
        if len(found) == MOST_FAULTS:
            break
    return [Fault(path, message) for path, message in found.items()]


def dotted(loc: Iterable[int | str]) -> str:
    """Write a path with dots. What pydantic adds, the kind of a field and `[key]`, is not in the body."""
    parts = [str(part) for part in loc]
    if len(parts) > 1 and parts[1] in _KINDS.get(parts[0], ()):
        del parts[1]
    if parts and parts[-1] == "[key]":
        parts.pop()
    return ".".join(parts).encode(errors="backslashreplace").decode()


def _sentence(path: str, detail: ErrorDetails, rules: Mapping[str, str]) -> str:
    match detail["type"]:
        case "missing":
            return "is required"
        case "extra_forbidden":
            return "is not a field that exists here"
        case "said":
            return detail["msg"]
        case "string_type" if path not in rules:
            return "must be text"
    while path not in rules:
        path = path.rpartition(".")[0]
    return rules[path]
