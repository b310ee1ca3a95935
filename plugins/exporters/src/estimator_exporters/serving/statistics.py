"""Statistics of a model version, as in the statistics extension of the Open Inference Protocol."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from estimator_exporters.serving.batching import Run


@dataclass
class Duration:
    """A number of events and the total of their times in nanoseconds."""

    count: int = 0
    ns: int = 0

    def add(self, ns: int, count: int = 1) -> None:
        """Counts events."""
        self.count += count
        self.ns += ns

    def json(self) -> dict[str, int]:
        """Returns the JSON object of the protocol."""
        return {"count": self.count, "ns": self.ns}


@dataclass
class Statistics:
    """The statistics of one version of a model. They are dropped with the version.

    Attributes:
        success: the requests that were answered.
        fail: the requests that were refused or failed after the model was known.
        queue: the times that requests waited for a run.
        decode: the times for decoding requests.
        compute: the times of runs. The count is the number of their requests.
        encode: the times for encoding answers.
    """

    success: Duration = field(default_factory=Duration)
    fail: Duration = field(default_factory=Duration)
    queue: Duration = field(default_factory=Duration)
    decode: Duration = field(default_factory=Duration)
    compute: Duration = field(default_factory=Duration)
    encode: Duration = field(default_factory=Duration)
    _rows: int = 0
    _runs: dict[int, Duration] = field(default_factory=dict[int, Duration])
    _last: int = 0

    def answered(self, began: int, decoded: int, ran: int, ended: int) -> None:
        """Counts a request by clock values in nanoseconds: start, end of decoding, end of the run, end of encoding."""
        self.decode.add(decoded - began)
        self.encode.add(ended - ran)
        self.success.add(ended - began)

    def ran(self, run: Run) -> None:
        """Counts a run."""
        self._rows += run.rows
        self._last = time.time_ns() // 10**6
        self.queue.add(run.queue_ns, run.requests)
        self.compute.add(run.compute_ns, run.requests)
        self._runs.setdefault(run.size, Duration()).add(run.compute_ns)

    def json(self, name: str, version: str) -> dict[str, Any]:
        """Returns one entry of `model_stats`."""
        none = Duration().json()
        runs = sorted(self._runs.copy().items())
        return {
            "name": name,
            "version": version,
            "last_inference": self._last,
            "inference_count": self._rows,
            "execution_count": sum(run.count for _, run in runs),
            "inference_stats": {
                "success": self.success.json(),
                "fail": self.fail.json(),
                "queue": self.queue.json(),
                "compute_input": self.decode.json(),
                "compute_infer": self.compute.json(),
                "compute_output": self.encode.json(),
                "cache_hit": none,
                "cache_miss": none,
            },
            "batch_stats": [
                {"batch_size": size, "compute_input": none, "compute_infer": run.json(), "compute_output": none}
                for size, run in runs
            ],
        }
