"""Where the spans of a command go: as the standard OTEL_ environment says, and nowhere if it says nothing.

`OTEL_TRACES_EXPORTER` names exporters (`otlp`, `console`, others that are installed); with an OTLP endpoint
in the environment it need not be set. What else there is, as `OTEL_SERVICE_NAME` or `OTEL_TRACES_SAMPLER`,
the SDK reads itself.
"""

import contextlib
import os
import threading
from collections.abc import Iterator
from importlib.metadata import entry_points
from typing import Any

from maitred.errors import ConfigError
from maitred.service import tracing

# How long what was not sent yet may take at the end, in seconds.
PATIENCE = 2.0
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_SHORT = {"otlp": "otlp_proto_http"}


@contextlib.contextmanager
def exporting() -> Iterator[None]:
    """Send spans where the environment says, for as long as the block lasts.

    `ConfigError` if it asks for an exporter that is not installed. A provider that an app has set stays.
    """
    names = _exporters()
    if not names or (tracing.INSTALLED and _is_set()):
        yield
        return
    if not tracing.INSTALLED:
        raise ConfigError(
            "OTEL_TRACES_EXPORTER asks for traces; install them: `pip install 'maitred[otel]'`."
        )
    provider = _provider(names)
    tracing.provider = provider
    try:
        yield
    finally:
        tracing.provider = None
        ending = threading.Thread(target=provider.shutdown, daemon=True)
        ending.start()
        ending.join(PATIENCE)


def _exporters() -> list[str]:
    """Name the exporters that the environment asks for."""
    if os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return []
    asked = os.environ.get("OTEL_TRACES_EXPORTER") or (
        "otlp" if any(map(os.environ.get, _ENDPOINTS)) and tracing.INSTALLED else ""
    )
    names = [name.strip() for name in asked.split(",")]
    return [name for name in names if name not in ("", "none")]


def _is_set() -> bool:
    """Tell whether the program has a provider of its own."""
    from opentelemetry.trace import ProxyTracerProvider, get_tracer_provider  # noqa: PLC0415 - an extra

    return not isinstance(get_tracer_provider(), ProxyTracerProvider)


def _provider(names: list[str]) -> Any:
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource  # noqa: PLC0415 - an extra
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

    resource = Resource.create()
    if str(resource.attributes.get(SERVICE_NAME, "unknown_service")).startswith("unknown_service"):
        resource = resource.merge(Resource({SERVICE_NAME: "maitred"}))
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    for name in names:
        provider.add_span_processor(BatchSpanProcessor(_exporter(name)))
    return provider


def _exporter(name: str) -> Any:
    found = entry_points(group="opentelemetry_traces_exporter", name=_SHORT.get(name, name))
    for each in found:
        return each.load()()
    known = sorted({each.name for each in entry_points(group="opentelemetry_traces_exporter")})
    raise ConfigError(f"OTEL_TRACES_EXPORTER: there is no exporter {name!r}; there are {', '.join(known)}.")
