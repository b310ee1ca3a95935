"""A run without a model, with the public contract `Run`. Every property is a field."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from estimator_core.config import RunConfig
from estimator_testing import _core


class RecordedSummaries:
    """Keeps summaries instead of writing them: `recorded` is a list of (kind, tag, step, value)."""

    def __init__(self) -> None:
        self.recorded: list[tuple[str, str, int, Any]] = []

    def scalar(self, tag: str, value: float, step: int) -> None:
        """Records a scalar."""
        self.recorded.append(("scalar", tag, step, float(value)))

    def histogram(self, tag: str, values: Any, step: int) -> None:
        """Records a histogram."""
        self.recorded.append(("histogram", tag, step, values))

    def image(self, tag: str, image: Any, step: int) -> None:
        """Records an image."""
        self.recorded.append(("image", tag, step, image))

    def text(self, tag: str, text: str, step: int) -> None:
        """Records a text."""
        self.recorded.append(("text", tag, step, text))

    def event(self, event: Any, step: int) -> None:
        """Records an event of TensorBoard's protocol."""
        self.recorded.append(("event", "", step, event))

    def flush(self) -> None:
        """Does nothing."""


@dataclass(kw_only=True)
class FakeRun:
    """A `Run` without a model or a loop. Every property is a field that can be set.

    Example:
        >>> run = FakeRun(mode="train", step=3)
        >>> run.request_stop("enough")
        >>> run.stop_reason
        'enough'
    """

    mode: str = "train"
    name: str | None = None
    step: int = 0
    first_step: int = 0
    last_step: int | None = None
    batch_size: int = 8
    batch: Any = None
    model_dir: Path = Path("model_dir")
    output_names: frozenset[str] = frozenset({"loss"})
    output_kinds: Mapping[str, str] = field(default_factory=lambda: {"loss": "scalar"})
    texts: Mapping[str, str] = field(default_factory=dict[str, str])
    resumed: bool = False
    failed: bool = False
    interrupted: bool = False
    stop_reason: str | None = None
    params: Any = None
    summaries: RecordedSummaries = field(default_factory=RecordedSummaries)
    config: RunConfig = field(default_factory=lambda: RunConfig(model_dir="model_dir"))
    fetched: list[str] = field(default_factory=list[str])
    followed: list[str] = field(default_factory=list[str])
    batch_functions: list[Any] = field(default_factory=list[Any])
    seconds: Mapping[str, float] = field(default_factory=dict[str, float])
    hook_seconds: Mapping[str, float] = field(default_factory=dict[str, float])
    activity: str = "step"
    flops: float | None = None
    assigned: dict[str, Any] = field(default_factory=dict[str, Any])
    results: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def estimator(self) -> Any:
        """An object with the attributes of an Estimator that hooks read."""
        return SimpleNamespace(config=self.config, params=self.params, model_dir=str(self.model_dir))

    def request_stop(self, reason: str) -> None:
        """Ends `drive` after the current dispatch. The first reason is kept."""
        self.stop_reason = self.stop_reason or reason

    def fetch(self, name: str) -> None:
        """Records the name."""
        self.fetched.append(name)

    def follow(self, name: str) -> None:
        """Records the name. `drive` delivers its values."""
        self.followed.append(name)

    def transform_batches(self, function: Callable[[Any, Any], tuple[Any, Any]]) -> None:
        """Records the function."""
        self.batch_functions.append(function)

    @property
    def input_part(self) -> tuple[int, int]:
        """Returns the whole input."""
        return 0, 1

    @property
    def input_rows(self) -> Callable[[int], np.ndarray[Any, Any]]:
        """Returns a function that selects all rows."""
        return np.arange

    @property
    def batch_metrics(self) -> Callable[[Any, Any, Any, Any], dict[str, Any]]:
        """Returns a function without metrics."""
        return lambda state, features, labels, weights: {}

    def add_result(self, name: str, value: Any) -> None:
        """Records the result.

        Raises:
            HookError: the value is not a number, an array or a list of JSON values, as in a real run.
        """
        _core.LoopRun.add_result(cast("_core.LoopRun", self), name, value)

    def step_flops(self) -> float | None:
        """Returns the value of `flops`."""
        return self.flops

    def variables(self) -> dict[str, np.ndarray[Any, Any]]:
        """Returns two small variables."""
        return {"dense/kernel": np.full((2, 3), float(self.step), np.float32), "dense/bias": np.zeros(3, np.float32)}

    @property
    def state(self) -> Any:
        """The same variables and the step, without anything else."""
        clock = np.array([self.step, 0, 0, 0], np.uint32)
        return SimpleNamespace(
            clock=clock, variables={**self.variables(), **self.assigned}, model_state={}, opt_state=()
        )

    def assign(self, values: Mapping[str, Any]) -> None:
        """Stores the values for `state`."""
        self.assigned.update(values)

    @contextmanager
    def swapped(self, values: Mapping[str, Any]) -> Generator[None]:
        """Within the block, `state` shows the values."""
        before, self.assigned = self.assigned, {**self.assigned, **values}
        try:
            yield
        finally:
            self.assigned = before
