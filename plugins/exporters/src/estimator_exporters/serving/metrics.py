"""What Prometheus reads from a server."""

from __future__ import annotations

import functools

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from estimator_exporters.serving.models import Observe

_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


class Metrics:
    """The counters of one server.

    Args:
        batch_sizes: the sizes models are run with.
    """

    def __init__(self, batch_sizes: tuple[int, ...]) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter("estimator_requests", "Requests answered.", ["model", "status"], registry=self.registry)
        self.seconds = Histogram(
            "estimator_request_seconds",
            "Seconds from the whole request to its response.",
            ["model"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.under_way = Gauge("estimator_requests_under_way", "Requests not answered yet.", registry=self.registry)
        self._requests_of = functools.lru_cache(1000)(self.requests.labels)
        self._seconds_of = functools.lru_cache(1000)(self.seconds.labels)
        self.batches = Histogram(
            "estimator_batch_size",
            "Padded size of the batches that were run.",
            ["model"],
            buckets=batch_sizes,
            registry=self.registry,
        )
        self.rows = Counter(
            "estimator_rows", "Rows that were run, padding left out.", ["model"], registry=self.registry
        )

    def observer(self, model: str) -> Observe:
        """What a model calls after each batch."""
        batches, rows_of = self.batches.labels(model), self.rows.labels(model)

        def observe(rows: int, size: int) -> None:
            batches.observe(size)
            rows_of.inc(rows)

        return observe

    def answered(self, model: str, status: int, seconds: float) -> None:
        """Counts a request; `model` is empty where there is none of that name."""
        self._requests_of(model, str(status)).inc()
        self._seconds_of(model).observe(seconds)

    def text(self) -> bytes:
        """All of them in the text format of Prometheus."""
        return generate_latest(self.registry)
