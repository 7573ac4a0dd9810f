"""The app: every route, the refusals as problems, and what runs for as long as the app does.

That is the ticker, the foresights by which jobs have estimates and can be watched, the clerks who expand and
report batches, and the couriers who tell submitters what has become of their jobs.
"""

import asyncio
import contextlib
import os
import secrets
import socket
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from http import HTTPStatus

from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import compile_path
from starlette.types import Receive, Scope, Send

from maitred.errors import Fault, InvalidJob, MaitredError
from maitred.http.answer import problem, problem_answer, problem_of
from maitred.http.auditing import Audited
from maitred.http.cors import Cors
from maitred.http.describe import DESCRIPTION, describe
from maitred.http.incoming import WholeSegments
from maitred.http.metering import Metered, RequestMetrics
from maitred.http.own_host import OwnHostOnly
from maitred.http.routes import batches, events, health, holds, jobs, keys, output, page, queues, sessions
from maitred.http.strict import STRICT, Strict
from maitred.http.tracing import Traced
from maitred.service import tracing
from maitred.service.delivery import Postman
from maitred.service.desk import Desk
from maitred.service.foresights import Foresights
from maitred.service.health import Health
from maitred.service.metrics import Metrics
from maitred.service.metrics.gauges import Gauges
from maitred.service.scribe import Scribes
from maitred.service.signing import Signer
from maitred.service.staff import clerks, couriers
from maitred.service.ticker import Ticker

Workers = Callable[[], Sequence[Health]]

NO_ROUTE = "there is nothing at this path; /docs shows what there is"
_CODES = {400: "malformed", 404: "no-such-route", 405: "no-such-method"}
_RULES = {
    "limit": "must be a whole number from 1 to 500",
    "version": "must be a whole number from 1 on",
    "from": "must be a whole number from 1 on",
    "type": "must be user or team",
    "event": "must be queue, state, output, progress, result, batch or reset",
}


def create_app(
    desk: Desk,
    *,
    hosts: Collection[str],
    workers: Workers = list,
    metrics: Metrics | None = None,
    cors: Collection[str] = (),
) -> FastAPI:
    """Make the app over a desk.

    `hosts` are the values of `Host` by which the server is its own, such as `127.0.0.1:7500`. `workers`
    tells how those in this process are; until all take jobs the server is not ready. `metrics` are those of
    this process, if it has others to count than this app. Pages of the origins in `cors` may call.
    """
    app = FastAPI(
        title="Maitred",
        version="1",
        description=DESCRIPTION + sessions.DESCRIPTION,
        redirect_slashes=False,
        # Its own telemetry would trace a second time what is traced here, and is asked for at each call.
        telemetry={"tracing": False, "metrics": False, "logs": False},
        docs_url=None,
        redoc_url=None,
        lifespan=_lifespan,
        exception_handlers={
            MaitredError: _refused,
            RequestValidationError: _faulty,
            StarletteHTTPException: _plain,
            ClientDisconnect: _gone,
            Exception: _broken,
        },
    )
    app.state.desk = desk
    app.state.workers = workers
    app.state.metrics = metrics = metrics or Metrics()
    app.state.gauges = Gauges(desk)
    metrics.writers.append(app.state.gauges.write)
    desk.stores.on_call(metrics.calls.note)
    parts = (jobs, output, holds, events, batches, queues, keys, sessions, health)
    routers = [*(part.router for part in parts), events.everything]
    # Not included as routers, which would look for each route twice; and before those of the pages on them.
    app.router.routes[:0] = [route for router in routers for route in router.routes]
    app.add_route("/docs", page.page)
    app.router.default = _nothing_here
    app.add_middleware(Audited, audit=desk.audit)
    app.add_middleware(WholeSegments)
    if tracing.INSTALLED:
        app.add_middleware(Traced)
    app.add_middleware(OwnHostOnly, hosts=hosts, origins=cors, unless=desk.door.guarded)
    if cors:
        app.add_middleware(Cors, origins=cors)
    app.add_middleware(Strict)
    app.add_middleware(Metered, metrics=RequestMetrics(metrics.registry))
    describe(app)
    return app


@contextlib.asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    desk: Desk = app.state.desk
    metrics: Metrics = app.state.metrics
    postman = Postman(Signer(desk.keys), tried=metrics.callbacks.note)
    if desk.foresights is None:
        desk.foresights = Foresights(desk.stores)
    desk.foresights.tallies = metrics.tallies
    mine = (desk.stores, _own_name(), postman, desk.foresights)
    if desk.clerks is None:
        desk.clerks = clerks(*mine)
    staff = (desk.clerks, couriers(*mine))
    ticker = Ticker(desk.stores, desk.foresights, staff)
    parts = (desk.foresights, ticker, *staff, Scribes(desk.stores, desk.foresights))
    tasks = [asyncio.create_task(part.run()) for part in parts]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _own_name() -> str:
    """Name this server in the locks that it has: no two are alike."""
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"


async def _refused(_request: Request, error: Exception) -> Response:
    assert isinstance(error, MaitredError)  # noqa: S101 - how it is registered
    return problem_answer(problem_of(error))


async def _faulty(_request: Request, error: Exception) -> Response:
    """Say which parts of the path and query are wrong; bodies are checked elsewhere."""
    assert isinstance(error, RequestValidationError)  # noqa: S101 - how it is registered
    names = [str(detail["loc"][1]) for detail in error.errors()]
    faults = [Fault(name, _RULES.get(name, "is not allowed here")) for name in names]
    return problem_answer(problem_of(InvalidJob(faults)))


async def _nothing_here(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer 404, also to somebody who wants a WebSocket."""
    answer = problem_answer(problem(404, _CODES[404], HTTPStatus.NOT_FOUND.phrase, NO_ROUTE))
    await answer(scope, receive, send)


async def _plain(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException | StarletteHTTPException)  # noqa: S101 - how it is registered
    status, detail, allowed = error.status_code, str(error.detail), ""
    if status == HTTPStatus.METHOD_NOT_ALLOWED:
        allowed = _allowed(request) or ", ".join(sorted((error.headers or {}).get("Allow", "").split(", ")))
        detail = f"{request.method} is not allowed here; allowed is {allowed}"
    answer = problem_answer(problem(status, _CODES.get(status, "http"), HTTPStatus(status).phrase, detail))
    answer.headers.update(error.headers or {})
    if allowed:
        answer.headers["Allow"] = allowed
    return answer


def _allowed(request: Request) -> str:
    """Name all methods of the path, as described; the framework names those of one route only."""
    described: dict[str, dict[str, object]] = request.app.openapi()["paths"]
    path = request.scope["path"]
    for template, methods in described.items():
        if template == path or compile_path(template)[0].match(path):
            return ", ".join(sorted(method.upper() for method in methods))
    return ""


async def _gone(_request: Request, _error: Exception) -> Response:
    """Answer nobody: the caller hung up in the middle of its body."""
    return Response(status_code=400)


async def _broken(_request: Request, _error: Exception) -> Response:
    answer = problem_answer(
        problem(500, "error", "Internal Server Error", "something went wrong in the server")
    )
    # Whoever adds these otherwise is further in than what broke.
    answer.raw_headers.extend(STRICT)
    return answer
