"""Logs a table of the parameters of the model at the start."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from typing import Any

from estimator_core.errors import check_count
from estimator_core.hooks import Hook, Run, StepOutputs

_log = logging.getLogger("estimator_hooks")


class ParameterSummaryHook(Hook):
    """Logs the number of parameters and bytes of each part of the model, and the work of a step, when training begins.

    Args:
        depth: the number of path parts that identify a row of the table. None shows one row per variable.

    Raises:
        ArgumentError: `depth` is not positive.

    Example:
        >>> ParameterSummaryHook(depth=1).next_step(0)
        1
    """

    def __init__(self, depth: int | None = 1) -> None:
        self._depth = None if depth is None else check_count("ParameterSummaryHook: depth", depth)
        self._done = False

    def after_create(self, run: Run) -> None:
        """Logs the table."""
        state = run.state
        self._done = False
        _log.info("%s", table(state.variables, state.model_state, self._depth))

    def next_step(self, step: int) -> int | None:
        """Returns the first step, when the program is compiled."""
        return None if self._done else step + 1

    def after_step(self, run: Run, step: int, out: StepOutputs) -> None:
        """Logs the floating point operations of a step."""
        self._done = True
        flops = run.step_flops()
        if flops is not None:
            _log.info("a step of %d examples: %.4g floating point operations", run.batch_size, flops)


def table(variables: Mapping[str, Any], model_state: Mapping[str, Any], depth: int | None) -> str:
    """Returns the table as text.

    Args:
        variables: arrays, or anything with shape and dtype, by path.
        model_state: arrays, or anything with shape and dtype, by path: the variables that are not trained.
        depth: see `ParameterSummaryHook`.

    Example:
        >>> import numpy as np
        >>> print(table({"dense/kernel": np.zeros((2, 3)), "dense/bias": np.zeros(3)}, {}, depth=1))
        part     parameters        bytes
        dense             9           72
        total             9           72
    """
    groups: dict[str, list[Any]] = {}
    for path in sorted(variables):
        name = path if depth is None else "/".join(path.split("/")[:depth])
        groups.setdefault(name, []).append(variables[path])
    rows = [(name, str(list(arrays[0].shape)) if depth is None else "", arrays) for name, arrays in groups.items()]
    if model_state:
        rows.append(("not trained", "", list(model_state.values())))
    rows.append(("total", "", [*variables.values(), *model_state.values()]))
    name_width = max(len(name) for name, _, _ in rows)
    shape_width = max(len("shape"), *(len(shape) for _, shape, _ in rows)) + 2 if depth is None else 0
    lines = [
        f"{'part':<{name_width}} {'shape' if depth is None else '':>{shape_width}} {'parameters':>12} {'bytes':>12}"
    ]
    for name, shape, arrays in rows:
        parameters = sum(math.prod(array.shape) for array in arrays)
        size = sum(math.prod(array.shape) * array.dtype.itemsize for array in arrays)
        lines.append(f"{name:<{name_width}} {shape:>{shape_width}} {parameters:>12,} {size:>12,}")
    return "\n".join(lines)
