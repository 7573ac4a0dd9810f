"""Traces of a real house go where the standard environment says."""

from typing import Any

import httpx
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.cli.house import House
from tests.service.address import Address, Reply, listening
from tests.waiting import eventually


def spans(address: Address) -> dict[str, Any]:
    """Give the spans that came in, by name."""
    found: dict[str, Any] = {}
    for request in address.requests:
        sent = ExportTraceServiceRequest.FromString(request.body)
        for resource in sent.resource_spans:
            for scope in resource.scope_spans:
                found |= {span.name: (span, resource.resource) for span in scope.spans}
    return found


async def test_submit_and_run_arrive_at_a_collector_as_one_trace(house: House) -> None:
    async with listening() as address:
        address.at("/v1/traces", Reply())
        environment: dict[str, Any] = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": address.url,
            "OTEL_BSP_SCHEDULE_DELAY": "50",
        }
        up = house.starts("up", "--port", "0", "--slots", "1", "--app", "app", **environment)
        assert up.stdout
        line = next((line for line in up.stdout if "ready" in line), "")
        async with httpx.AsyncClient(base_url=line.split()[-1], trust_env=False) as http:
            run = {"handler": "double", "args": {"n": 1}}
            body = {"key": "k", "submitter": {"type": "user", "id": "1"}, "run": run}
            assert (await http.put("/api/v1/queues/default/jobs", json=body)).status_code == 201

            async def arrived() -> bool:
                return {"submit", "run handler:double"} <= spans(address).keys()

            await eventually(arrived)
        found = spans(address)
        submit, resource = found["submit"]
        ran, _ = found["run handler:double"]
        assert ran.trace_id == submit.trace_id
        assert ran.parent_span_id == submit.span_id
        assert ("service.name", "maitred") in {
            (each.key, each.value.string_value) for each in resource.attributes
        }
    # Nobody listens there any more, and that keeps nobody from ending.
    house.stops(up)
