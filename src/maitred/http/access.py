"""Who may call what: one table for all routes.

A route that does not stand here is for admins only. For a submitter's key the table also says whose a job,
a batch or a line must be; where nothing is said, the call itself leaves out what is not for it.
"""

import re
from typing import Literal, NamedTuple
from urllib.parse import unquote

from fastapi import Depends
from starlette.requests import HTTPConnection

from maitred.core.job import Submitter
from maitred.errors import Fault, Forbidden, InvalidJob
from maitred.http.incoming import TheDesk
from maitred.service.caller import Caller
from maitred.service.desk import Desk

Own = Literal["job", "batch", "submitter"]
WEBSOCKET = "WS"
_WHOLE_NUMBER = re.compile("[0-9]{1,16}")


class Rule(NamedTuple):
    """The roles that may call a route; what of it must be a submitter's own. Nobody named: anybody at all.

    What tells of all queues at once is not for a key that is good for some of them.
    """

    roles: frozenset[str]
    own: Own | None = None
    all_queues: bool = False


_ANYBODY = Rule(frozenset())
_ADMIN = Rule(frozenset({"admin"}))
_OPERATOR = Rule(frozenset({"operator", "admin"}))
_VIEWER = Rule(frozenset({"viewer", "operator", "admin"}))
_SEE = Rule(frozenset({"submitter", "viewer", "operator", "admin"}))
_SEE_OWN_JOB = _SEE._replace(own="job")
_SEE_OWN_BATCH = _SEE._replace(own="batch")
_SUBMIT = Rule(frozenset({"submitter", "operator", "admin"}))
_OWN_JOB = _SUBMIT._replace(own="job")
_OWN_BATCH = _SUBMIT._replace(own="batch")

_QUEUE = "/api/v1/queues/{queue}"
_JOB = f"{_QUEUE}/jobs/{{id}}"
_BATCH = f"{_QUEUE}/batches/{{bid}}"
_SUBMITTER = f"{_QUEUE}/submitters/{{type}}/{{id}}"

RULES: dict[str, Rule] = {
    "GET /healthz": _ANYBODY,
    "GET /readyz": _ANYBODY,
    "GET /metrics": _VIEWER._replace(all_queues=True),
    "GET /api/v1/events": _SEE,
    "GET /api/v1/queues": _SEE,
    f"GET {_QUEUE}": _SEE,
    f"GET {_QUEUE}/line": _SEE,
    f"GET {_QUEUE}/running": _SEE,
    f"GET {_QUEUE}/workers": _VIEWER,
    f"GET {_SUBMITTER}": _SEE._replace(own="submitter"),
    f"POST {_QUEUE}/pause": _OPERATOR,
    f"POST {_QUEUE}/resume": _OPERATOR,
    f"POST {_QUEUE}/check": _OPERATOR,
    f"POST {_QUEUE}/reconcile": _OPERATOR,
    f"POST {_SUBMITTER}/hold": _OPERATOR,
    f"POST {_SUBMITTER}/resume": _OPERATOR,
    f"POST {_QUEUE}/profiles/{{name}}/hold": _OPERATOR,
    f"POST {_QUEUE}/profiles/{{name}}/resume": _OPERATOR,
    f"{WEBSOCKET} {_QUEUE}/interactive": _SUBMIT,
    # jobs
    f"PUT {_QUEUE}/jobs": _SUBMIT,
    f"POST {_QUEUE}/jobs/many": _SUBMIT,
    f"GET {_QUEUE}/jobs": _SEE,
    f"GET {_JOB}": _SEE,
    f"GET {_JOB}/deliveries": _SEE_OWN_JOB,
    f"GET {_JOB}/events": _SEE_OWN_JOB,
    f"GET {_JOB}/output": _SEE_OWN_JOB,
    f"GET {_JOB}/artifacts/{{name}}": _SEE_OWN_JOB,
    f"DELETE {_JOB}": _OWN_JOB,
    f"POST {_JOB}/cancel": _OWN_JOB,
    f"POST {_JOB}/duration": _OWN_JOB,
    f"POST {_JOB}/release": _OPERATOR,
    f"POST {_JOB}/delay": _OPERATOR,
    f"POST {_JOB}/priority": _OPERATOR,
    f"POST {_JOB}/retry": _OPERATOR,
    f"POST {_JOB}/hold": _OPERATOR,
    f"POST {_JOB}/resume": _OPERATOR,
    # batches
    f"POST {_QUEUE}/batches": _SUBMIT,
    f"GET {_QUEUE}/batches": _SEE,
    f"GET {_BATCH}": _SEE_OWN_BATCH,
    f"GET {_BATCH}/report": _SEE_OWN_BATCH,
    f"GET {_BATCH}/events": _SEE_OWN_BATCH,
    f"POST {_BATCH}/jobs": _OWN_BATCH,
    f"POST {_BATCH}/seal": _OWN_BATCH,
    f"DELETE {_BATCH}": _OWN_BATCH,
    f"POST {_BATCH}/hold": _OPERATOR,
    f"POST {_BATCH}/resume": _OPERATOR,
    f"POST {_BATCH}/retry": _OPERATOR,
    f"POST {_BATCH}/update-report": _OPERATOR,
    # keys
    "GET /api/v1/keys": _ADMIN,
    "POST /api/v1/keys": _ADMIN,
    "DELETE /api/v1/keys/{id}": _ADMIN,
    "POST /api/v1/keys/{id}/rotate": _ADMIN,
    "GET /api/v1/audit": _ADMIN,
}


async def authorise(connection: HTTPConnection, desk: TheDesk) -> None:
    """Let a call pass that its caller may make, and note who that is; `Unauthorized` or `Forbidden`."""
    rule = RULES.get(action_of(connection), _ADMIN)
    if not rule.roles:
        return
    if connection.scope["type"] == "websocket" and "authorization" not in connection.headers:
        # A browser cannot send a header here: whoever calls is known by the first frame.
        return
    caller = await desk.door.admit(connection.headers.get("authorization"), address_of(connection))
    connection.state.caller = caller
    must_be_allowed(connection, caller)
    if caller.limited and rule.own:
        await _must_own(connection, desk, caller, rule.own)


def must_be_allowed(connection: HTTPConnection, caller: Caller) -> None:
    """Raise `Forbidden` unless the caller's role may call this route, and its key this queue."""
    rule = RULES.get(action_of(connection), _ADMIN)
    if caller.key.role not in rule.roles:
        raise Forbidden(f"the key's role is {caller.key.role}; this is for: {', '.join(sorted(rule.roles))}")
    if rule.all_queues and caller.key.queues:
        raise Forbidden("this is of all queues, and the key is good for some of them")
    queue = connection.path_params.get("queue")
    if queue is not None and not caller.may_use(unquote(queue)):
        raise Forbidden(f"the key is not good for the queue {unquote(queue)!r}")


def action_of(connection: HTTPConnection) -> str:
    """Name what is called, as the table does."""
    scope = connection.scope
    method = WEBSOCKET if scope["type"] == "websocket" else scope["method"]
    return f"{'GET' if method == 'HEAD' else method} {scope['route'].path}"


def address_of(connection: HTTPConnection) -> str:
    """Give where a call comes from."""
    return connection.client.host if connection.client else ""


async def _must_own(connection: HTTPConnection, desk: Desk, caller: Caller, own: Own) -> None:
    """Raise `Forbidden` for what is another submitter's; what is not there is the call's own to tell."""
    named = {name: unquote(value) for name, value in connection.path_params.items()}
    if own == "submitter":
        caller.must_own(Submitter(named["type"], named["id"]))
        return
    store = desk.store(named["queue"])
    if own == "batch":
        batch = await store.batch(named["bid"])
        owners = [batch.submitter] if batch else []
    else:
        views = [
            view for version in _versions(connection) for view in await store.read([named["id"]], version)
        ]
        owners = [view.job.submitter for view in views if view]
    if not all(map(caller.owns, owners)):
        raise Forbidden(f"the {own} is another submitter's")


def _versions(connection: HTTPConnection) -> list[int | None]:
    """Give the version that is asked about; the newest one must be the caller's own too."""
    asked = connection.query_params.getlist("version")
    if not all(map(_WHOLE_NUMBER.fullmatch, asked)):
        raise InvalidJob([Fault("version", "must be a whole number from 1 on")])
    return [None, *(int(text) for text in asked if int(text) < 1 << 53)]


KNOWN = Depends(authorise)
