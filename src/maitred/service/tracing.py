"""Traces with OpenTelemetry: one from the submit of a job over its runs to its callbacks.

Without the extra `maitred[otel]` nothing is imported here and nothing is kept. With it, spans go to the
program's tracer provider; the commands set one up from the OTEL_ environment. Without a provider nobody
traces, and nothing is kept either. The context of a submit is kept
in the job's body as `trace`, with the fields of W3C's trace context. Scripts never look into a body, and no
document shows it.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache, lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal

from maitred.errors import MaitredError

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

Kind = Literal["producer", "consumer", "client"]
Trace = Mapping[str, str]
NO_TRACE: Trace = {}


def _installed() -> bool:
    try:
        return find_spec("opentelemetry.sdk") is not None
    except ModuleNotFoundError:
        return False


# Whether the extra is installed, and whose spans these are: None for the provider of the whole program.
INSTALLED = _installed()
provider: "TracerProvider | None" = None


def on() -> bool:
    """Tell whether anybody traces; cheap enough to ask each time."""
    return INSTALLED and (provider is not None or _program_traces(int(time.monotonic())))


@lru_cache(maxsize=1)
def _program_traces(_second: int) -> bool:
    """Tell whether the program has a provider; looked for once a second, since that takes a while."""
    api = _api()
    return not isinstance(api.get_tracer_provider(), api.ProxyTracerProvider)


@cache
def _api() -> Any:
    from opentelemetry import trace  # noqa: PLC0415 - see the docstring

    return trace


class Span:
    """A part of a trace that is under way; where nobody traces, nothing."""

    def __init__(self, span: Any = None) -> None:
        self._span = span

    def fail(self, code: str) -> None:
        """Say that it failed, by a stable code."""
        if self._span is not None:
            api = _api()
            self._span.set_attribute("maitred.code", code)
            self._span.set_status(api.Status(api.StatusCode.ERROR, code))

    def note(self, **attributes: str | int) -> None:
        """Say something about it."""
        if self._span is not None:
            self._span.set_attributes(_named(attributes))


_NOBODY = Span()


def span(
    name: str, kind: Kind, parent: Trace | None = None, **attributes: str | int
) -> AbstractContextManager[Span]:
    """Let what is done in the block be a span.

    Its parent is the kept one, or with None whatever is under way in this program. An attribute `queue` is
    `maitred.queue`.
    """
    if not on():
        return nullcontext(_NOBODY)
    return _span(name, kind, parent, attributes)


@contextmanager
def _span(name: str, kind: Kind, parent: Trace | None, attributes: Mapping[str, str | int]) -> Iterator[Span]:
    from opentelemetry.context import Context  # noqa: PLC0415 - see the docstring

    under = None if parent is None else _w3c().extract(parent, context=Context())
    with (
        _api()
        .get_tracer("maitred", tracer_provider=provider)
        .start_as_current_span(
            name,
            context=under,
            kind=_api().SpanKind[kind.upper()],
            attributes=_named(attributes),
            set_status_on_exception=False,
            record_exception=False,
        ) as found
    ):
        span = Span(found)
        try:
            yield span
        except MaitredError as error:
            span.fail(error.code)
            raise
        except BaseException as error:
            span.fail(type(error).__name__)
            raise


def under_way() -> Trace:
    """Give what is kept of the span that is under way; nothing if there is none."""
    if not on():
        return NO_TRACE
    kept: dict[str, str] = {}
    _w3c().inject(kept)
    return kept


def outgoing() -> dict[str, str]:
    """Give the headers by which whoever is called goes on with the trace."""
    if not on():
        return {}
    from opentelemetry.propagate import inject  # noqa: PLC0415 - see the docstring

    headers: dict[str, str] = {}
    inject(headers)
    return headers


@contextmanager
def incoming(headers: Mapping[str, str]) -> Iterator[None]:
    """Let the trace that a caller names be the one that is under way; only where somebody traces."""
    from opentelemetry.context import attach, detach  # noqa: PLC0415 - see the docstring
    from opentelemetry.propagate import extract  # noqa: PLC0415

    token = attach(extract(headers))
    try:
        yield
    finally:
        detach(token)


@cache
def _w3c() -> Any:
    from opentelemetry.trace.propagation.tracecontext import (  # noqa: PLC0415 - see the docstring
        TraceContextTextMapPropagator,
    )

    return TraceContextTextMapPropagator()


def _named(attributes: Mapping[str, str | int]) -> dict[str, str | int]:
    return {f"maitred.{name}": value for name, value in attributes.items()}
