"""The table of `file_to_model.py` and the settings of its model, which every contestant reads, in any environment.

Imports only the standard library, so that processes of TensorFlow and PyTorch import it too.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

BATCH = 512
NUMBERS = ("price", "position", "clicks", "seconds")
SITES = tuple(f"site{index:02}" for index in range(50))
DEVICES = ("phone", "tablet", "desktop", "tv", "watch", "car", "console", "other")
AGES = (18, 25, 35, 45, 55, 65)
USER_BUCKETS, CROSS_BUCKETS = 10_000, 1_000
SITE_WIDTH, USER_WIDTH = 8, 16
HIDDEN = (64, 32)
#: The learning rate of Adagrad in both parts of the model. Its accumulators begin with 0.1 everywhere.
RATE = 0.05
#: The share of the steps of a pass before its later part.
LATER = 0.25


def later_step(rows: int) -> int:
    """Returns the step after which the later part of a pass begins."""
    return int(rows // BATCH * LATER)


def processor_time() -> float:
    """Returns the processor seconds of this process and of its children that have ended."""
    return sum(os.times()[:4])


class Pass:
    """Records the times of one pass: whole call, processor time, and the start of the later part."""

    def __init__(self) -> None:
        self._wall, self._cpu, self._later = time.perf_counter(), processor_time(), 0.0

    def later(self) -> None:
        """Records that the steps up to `later_step` are done."""
        self._later = time.perf_counter()

    def end(self, rows: int) -> dict[str, float]:
        """Records that the last step is done, and returns the times."""
        now, cpu = time.perf_counter(), processor_time() - self._cpu
        counted = rows - later_step(rows) * BATCH
        return {"seconds": now - self._wall, "cpu": cpu, "later": counted / (now - self._later)}


def answer(result: str | Path, figures: dict[str, float], loss: Callable[[], float]) -> None:
    """Writes the results of a pass. `loss` is computed from the held-out rows, once for a file of results."""
    path = Path(result)
    lines: list[dict[str, Any]] = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    known = lines[0]["loss"] if lines else loss()
    with path.open("a") as file:
        file.write(json.dumps({**figures, "loss": known}) + "\n")
