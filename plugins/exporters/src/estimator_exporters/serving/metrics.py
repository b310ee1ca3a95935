"""The metrics of a server for Prometheus."""

from __future__ import annotations

import functools

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)

from estimator_exporters.serving.batching import Observe, Run
from estimator_exporters.serving.budget import Budget

_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


class Metrics:
    """The counters of one server.

    Args:
        batch_sizes: the batch sizes of the models.
        budget: the memory budget of requests.
    """

    def __init__(self, batch_sizes: tuple[int, ...], budget: Budget) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        self.requests = Counter("estimator_requests", "Requests answered.", ["model", "status"], registry=self.registry)
        self.seconds = self._histogram("estimator_request_seconds", "Seconds from the head of a request to its answer.")
        self.queue = self._histogram("estimator_queue_seconds", "Seconds that requests of a run waited, on average.")
        self.compute = self._histogram("estimator_compute_seconds", "Seconds of a run.")
        self.under_way = Gauge("estimator_requests_under_way", "Requests not answered yet.", registry=self.registry)
        self.versions = Gauge("estimator_model_versions", "Versions served.", ["model"], registry=self.registry)
        self.loads = Counter("estimator_loads", "Exports loaded.", ["model", "result"], registry=self.registry)
        held = Gauge("estimator_memory_bytes", "Bytes that requests hold.", registry=self.registry)
        held.set_function(lambda: budget.used)
        total = Gauge("estimator_memory_limit_bytes", "Bytes that requests may hold.", registry=self.registry)
        total.set(budget.total)
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
        """Returns the function that a model calls after each batch."""
        batches, rows_of = self.batches.labels(model), self.rows.labels(model)
        queue, compute = self.queue.labels(model), self.compute.labels(model)

        def observe(run: Run) -> None:
            batches.observe(run.size)
            rows_of.inc(run.rows)
            queue.observe(run.queue_ns / run.requests / 1e9)
            compute.observe(run.compute_ns / 1e9)

        return observe

    def answered(self, model: str, status: int, seconds: float) -> None:
        """Counts a request. `model` is empty if there is no model with the requested name."""
        self._requests_of(model, str(status)).inc()
        self._seconds_of(model).observe(seconds)

    def text(self) -> bytes:
        """Returns all metrics in the text format of Prometheus."""
        return generate_latest(self.registry)

    def _histogram(self, name: str, help_text: str) -> Histogram:
        return Histogram(name, help_text, ["model"], buckets=_SECONDS, registry=self.registry)
