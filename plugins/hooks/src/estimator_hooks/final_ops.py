"""Values of the last step, read when the run ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from estimator_core.builtin_hooks import check_known
from estimator_core.errors import HookError
from estimator_core.hooks import Hook, Run


class FinalOpsHook(Hook):
    """Stores named values of the last step, or the result of a function at the end of the run, in `final_ops_values`.

    Args:
        final_ops: a name of an output, a list or a dict of names, or a function `run -> value`.

    Attributes:
        final_ops_values: the values, in the structure of `final_ops`, available after the run. None if no step ran.

    Raises:
        HookError: there is no output with a name; raised in the run.

    Example:
        >>> hook = FinalOpsHook(lambda run: run.step)
        >>> hook.final_ops_values is None
        True

    Source: `tf.compat.v1.train.FinalOpsHook`; its `final_ops_feed_dict` has no counterpart.
    """

    def __init__(self, final_ops: str | Sequence[str] | Mapping[str, str] | Callable[[Run], Any]) -> None:
        self._final_ops = final_ops
        self._last: dict[str, np.ndarray] = {}
        self.final_ops_values: Any = None

    def begin(self, run: Run) -> None:
        """Discards the values of an earlier run, and follows the outputs."""
        self._last, self.final_ops_values = {}, None
        for name in self._names():
            run.follow(name)

    def after_create(self, run: Run) -> None:
        """Checks the names."""
        check_known("FinalOpsHook", self._names(), run.output_names)

    def on_values(self, run: Run, steps: range, values: Mapping[str, np.ndarray]) -> None:
        """Keeps the newest values."""
        if len(steps):
            self._last = {name: stacked[-1] for name, stacked in values.items()}

    def end(self, run: Run) -> None:
        """Fills `final_ops_values`."""
        ops = self._final_ops
        if callable(ops):
            self.final_ops_values = ops(run)
        elif self._last:
            if isinstance(ops, str):
                self.final_ops_values = self._last[ops]
            elif isinstance(ops, Mapping):
                self.final_ops_values = {label: self._last[name] for label, name in ops.items()}
            else:
                self.final_ops_values = [self._last[name] for name in ops]

    def _names(self) -> list[str]:
        ops = self._final_ops
        if callable(ops):
            return []
        names = [ops] if isinstance(ops, str) else list(ops.values()) if isinstance(ops, Mapping) else list(ops)
        if not names:
            raise HookError("FinalOpsHook: final_ops is empty. Give at least one output, or a function of the run.")
        return names
