"""Traces by OpenTelemetry, where the extra `otel` is installed and `OTEL_...` in the environment asks for them.

Spans are of calls, moves, seatings and deliveries. They name methods, matches and seats, and nothing that a seat may not know. While
traces are off, a span costs one look at a variable.
"""

from __future__ import annotations

import os
import time
from contextlib import AbstractContextManager, nullcontext
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import Any

import structlog

ASKING = ("OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
"""Any of these variables asks for traces."""
_PROTOCOLS = {"grpc": "otlp_proto_grpc"}
_OVER_HTTP = "otlp_proto_http"


class Tracing:
    """The traces of this process."""

    def __init__(self) -> None:
        self.is_on = False
        self._tracer: Any = None
        self._trace: Any = None

    def start(self, process: str) -> None:
        """Send spans to the exporter that the environment names, if it names one. `process` is this process among those of the server."""
        wanted = os.environ.get("OTEL_TRACES_EXPORTER", "otlp")
        is_disabled = os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true"
        if wanted == "none" or is_disabled or not any(map(os.environ.get, ASKING)):
            return
        if not all(map(find_spec, ("opentelemetry", "opentelemetry.sdk"))):
            why = "install the extra otel: '.[otel]' in a clone"
            structlog.get_logger().warning("traces_are_off", why=why)
            return
        from opentelemetry import trace
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        # Else opentelemetry-instrument has made one.
        if not isinstance(trace.get_tracer_provider(), TracerProvider):
            named = {} if os.environ.get("OTEL_SERVICE_NAME") else {"service.name": "seatwise"}
            resource = Resource.create({**named, "service.instance.id": process or "server"})
            provider = TracerProvider(resource=resource)
            provider.add_span_processor(BatchSpanProcessor(_load_exporter(wanted)()))
            trace.set_tracer_provider(provider)
        self._trace, self._tracer, self.is_on = trace, trace.get_tracer("seatwise"), True

    def open_span(self, name: str, **attributes: str) -> AbstractContextManager[Any]:
        """Return a block that is a span. Lines that are logged in it have its ids."""
        if not self.is_on:
            return nullcontext()
        span: AbstractContextManager[Any] = self._tracer.start_as_current_span(
            name, attributes=attributes, record_exception=False, set_status_on_exception=False
        )
        return span

    def name_span(self, name: str, **attributes: str | int) -> None:
        """Give the span of the block around this line its name, which is known only at its end."""
        if self.is_on:
            span = self._trace.get_current_span()
            span.update_name(name)
            span.set_attributes(attributes)

    def record_span(self, name: str, took_s: float, **attributes: str | int) -> None:
        """Record a span that ends now. It took so many seconds."""
        if self.is_on:
            start_ns = time.time_ns() - int(took_s * 1e9)
            self._tracer.start_span(name, attributes=attributes, start_time=start_ns).end()

    def add_ids(
        self, _logger: Any, _method: str, line: structlog.typing.EventDict
    ) -> structlog.typing.EventDict:
        """Add `trace_id` and `span_id` to a line that is logged in a span. It is a processor of structlog."""
        if self.is_on and (context := self._trace.get_current_span().get_span_context()).is_valid:
            line.update(trace_id=f"{context.trace_id:032x}", span_id=f"{context.span_id:016x}")
        return line


def _load_exporter(wanted: str) -> Any:
    """Return the class of an exporter. Raises ValueError if it is not installed."""
    name = wanted
    if wanted == "otlp":
        name = _PROTOCOLS.get(os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL", ""), _OVER_HTTP)
    for entry in entry_points(group="opentelemetry_traces_exporter", name=name):
        return entry.load()
    raise ValueError(f"OTEL_TRACES_EXPORTER is {wanted!r}, and no exporter of this name is installed")


TRACING = Tracing()
