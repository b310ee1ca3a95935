"""Log lines as JSON, and traces with OpenTelemetry (extra telemetry)."""

from __future__ import annotations

import contextlib
import importlib.util
import logging
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager
from typing import Any

from estimator_core.errors import ArgumentError

Answered = Callable[[int], None]
Tracing = Callable[[str, str | None], AbstractContextManager[Answered]]


@contextlib.contextmanager
def untraced(model: str, parent: str | None) -> Generator[Answered]:
    """Does not trace."""
    yield lambda status: None


def traced(provider: Any = None) -> Tracing:
    """Returns a function that opens a span for a request, under the client's span if the client sends `traceparent`.

    Args:
        provider: the provider of tracers. None: a provider that exports to OTEL_EXPORTER_OTLP_ENDPOINT.

    Raises:
        ArgumentError: OpenTelemetry is not installed.
    """
    _need("opentelemetry.sdk", "--traces")
    from opentelemetry import trace  # pyright: ignore[reportMissingImports]
    from opentelemetry.trace.propagation.tracecontext import (  # pyright: ignore[reportMissingImports]
        TraceContextTextMapPropagator,
    )

    tracer = (provider or _sending()).get_tracer("estimator_exporters")
    propagator = TraceContextTextMapPropagator()

    @contextlib.contextmanager
    def tracing(model: str, parent: str | None) -> Generator[Answered]:
        context = propagator.extract({} if parent is None else {"traceparent": parent})
        with tracer.start_as_current_span(
            f"infer {model}", context, trace.SpanKind.SERVER, record_exception=False, set_status_on_exception=False
        ) as span:
            span.set_attribute("estimator.model", model)

            def answered(status: int) -> None:
                span.set_attribute("http.response.status_code", status)
                if status >= 500:
                    span.set_status(trace.StatusCode.ERROR)

            yield answered

    return tracing


def log_as_json(stream: Any = None) -> None:
    """Writes the log lines of this process as JSON, one object per line.

    Args:
        stream: the stream to write to. None: stderr.

    Raises:
        ArgumentError: python-json-logger is not installed.
    """
    _need("pythonjsonlogger", "--log-format json")
    from pythonjsonlogger.json import JsonFormatter  # pyright: ignore[reportMissingImports]

    handler = logging.StreamHandler(stream)
    names = {"levelname": "level", "name": "logger"}
    handler.setFormatter(JsonFormatter("%(levelname)s %(name)s %(message)s", rename_fields=names, timestamp="time"))
    logging.basicConfig(handlers=[handler], level=logging.INFO, force=True)


def _sending() -> Any:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # pyright: ignore[reportMissingImports]
        OTLPSpanExporter,
    )
    from opentelemetry.sdk.trace import TracerProvider  # pyright: ignore[reportMissingImports]
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # pyright: ignore[reportMissingImports]

    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider


def _need(module: str, what: str) -> None:
    try:
        found = importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        found = False
    if not found:
        raise ArgumentError(f"{what} needs {module}. Install it: pip install 'estimator-exporters[serve,telemetry]'")
