"""One trace goes from the submit over the worker to the callback, and nothing of it is shown."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode, get_current_span

import maitred
from maitred.core.settings import Settings
from maitred.service import tracing
from maitred.service.queue import Queue
from maitred.wire import decode_body
from tests.metrics.conftest import Counted
from tests.service.address import Reply, listening
from tests.waiting import eventually

CALLER = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{CALLER}-00f067aa0ba902b7-01"


@pytest.fixture
def kind() -> str:
    """Override: a body is bytes to every store."""
    return "valkey"


class Spans:
    """The spans that have ended."""

    def __init__(self, exporter: InMemorySpanExporter) -> None:
        self._exporter = exporter

    async def named(self, name: str, count: int = 1) -> list[ReadableSpan]:
        """Wait for so many spans with this name; give them."""

        async def look() -> list[ReadableSpan]:
            found = [span for span in self._exporter.get_finished_spans() if span.name == name]
            return found if len(found) >= count else []

        return await eventually(look, patience=30)


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[Spans]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(tracing, "provider", provider)
    yield Spans(exporter)
    provider.shutdown()


def trace_of(span: ReadableSpan) -> str:
    assert span.context
    return f"{span.context.trace_id:032x}"


def parent_of(span: ReadableSpan) -> int:
    assert span.parent
    return span.parent.span_id


async def test_one_trace_from_the_caller_over_submit_and_run_to_the_callback(
    counted: Counted, spans: Spans
) -> None:
    seen = []

    def grade(assignment: int) -> int:
        seen.append(f"{get_current_span().get_span_context().trace_id:032x}")
        return assignment

    counted.handlers.register("grade", grade)
    await counted.store.configure(Settings(private_addresses=True))
    counted.guest.http.headers["traceparent"] = PARENT
    async with listening() as address, counted.worker():
        document = await counted.guest.submits("k", response_url=address.at("/told", Reply()))
        [submit] = await spans.named("submit")
        [run] = await spans.named("run handler:grade")
        [told] = await spans.named("callback job.ended")
        assert {trace_of(span) for span in (submit, run, told)} == {CALLER}
        assert submit.context
        assert parent_of(run) == parent_of(told) == submit.context.span_id
        assert parent_of(submit) == 0x00F067AA0BA902B7
        assert (submit.kind, run.kind, told.kind) == (SpanKind.PRODUCER, SpanKind.CONSUMER, SpanKind.CLIENT)
        assert seen == [CALLER], "the handler's own spans are in the trace too"
        assert run.attributes
        assert run.attributes["maitred.job"] == document["id"]
        assert run.attributes["maitred.queue"] == counted.store.queue
        sent = [request.headers["traceparent"] for request in address.requests]
        assert [each.split("-")[1] for each in sent] == [CALLER, CALLER]
    shown = (await counted.guest.asks("GET", document["id"])).text
    bodies = b"".join(request.body for request in address.requests).decode()
    assert CALLER not in shown + bodies


async def test_a_job_that_failed_is_an_error_in_its_trace_with_the_code(
    counted: Counted, spans: Spans
) -> None:
    def grade(assignment: int) -> int:
        raise ValueError(assignment)

    counted.handlers.register("grade", grade)
    async with counted.worker():
        await counted.guest.submits("k")
        [run] = await spans.named("run handler:grade")
    assert run.status.status_code is StatusCode.ERROR
    assert run.attributes
    assert run.attributes["maitred.code"] == "error"


async def test_a_submit_that_is_refused_ends_its_span_with_the_reason(counted: Counted, spans: Spans) -> None:
    assert (await counted.guest.puts({"key": ""})).status_code == 422
    [submit] = await spans.named("submit")
    assert submit.status.status_code is StatusCode.ERROR


async def test_each_job_of_a_list_and_of_a_program_is_traced(counted: Counted, spans: Spans) -> None:
    queue = Queue(counted.store.queue, counted.stores)
    accepted = await queue.put_many(
        [
            {"key": f"k{n}", "submitter": {"type": "user", "id": "1"}, "run": {"handler": "f"}}
            for n in range(2)
        ]
    )
    [many] = await spans.named("submit many")
    ids = [each.id for each in accepted if not isinstance(each, Exception)]
    views = [view for view in await counted.store.read(ids) if view]
    kept = [decode_body(view.job.body)["trace"]["traceparent"] for view in views]
    assert [text.split("-")[1] for text in kept] == [trace_of(many)] * 2


async def test_without_a_trace_nothing_is_kept(counted: Counted) -> None:
    document = await counted.guest.submits("k")
    [view] = await counted.store.read([document["id"]])
    assert view
    assert "trace" not in decode_body(view.job.body)


BARE = """
import sys
sys.modules["opentelemetry.sdk"] = None
from maitred.service import tracing
from maitred.service.order import order_of
import maitred.service.intake, maitred.service.delivery, maitred.worker
assert not tracing.INSTALLED
with tracing.span("submit", "producer", queue="q") as span:
    span.note(job="x")
    span.fail("error")
    assert tracing.under_way() == {}
    assert tracing.outgoing() == {}
print(*sorted(name for name in sys.modules if name.startswith("opentelemetry")))
"""


def test_without_the_extra_nothing_is_imported(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", BARE],
        cwd=tmp_path,
        env={"PYTHONPATH": str(Path(maitred.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert set(ended.stdout.split()) <= {"opentelemetry", "opentelemetry.sdk"}


def test_the_environment_says_where_spans_go() -> None:
    script = (
        "from maitred.cli.tracing import exporting\n"
        "from maitred.service import tracing\n"
        "with exporting():\n"
        "    with tracing.span('submit', 'producer', queue='q'): pass\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script],
        env={
            "PYTHONPATH": str(Path(maitred.__file__).parents[1]),
            "OTEL_TRACES_EXPORTER": "console",
            "OTEL_SERVICE_NAME": "kitchen",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    span = json.loads(ended.stdout)
    assert span["name"] == "submit"
    assert span["resource"]["attributes"]["service.name"] == "kitchen"


def test_an_exporter_that_is_not_there_is_refused_with_those_that_are() -> None:
    script = "from maitred.cli.tracing import exporting\nwith exporting(): pass\n"
    ended = subprocess.run(
        [sys.executable, "-c", script],
        env={
            "PYTHONPATH": str(Path(maitred.__file__).parents[1]),
            "OTEL_TRACES_EXPORTER": "pigeon",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert "there is no exporter 'pigeon'; there are console, otlp_proto_http" in ended.stderr
