"""`RunConfig(debug=True)`: runs steps without compilation and checks every value."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from estimator_core._step import TrainStep
from estimator_core.errors import NanLossDuringTrainingError

_log = logging.getLogger("estimator_core")


def program(step: TrainStep) -> Callable[[int], Callable[..., Any]]:
    """Returns the training program of debug mode.

    It prints the variables once, runs without jit, and names the first value that is not finite.
    """
    shown: list[bool] = []

    def run(state: Any, features: Any, labels: Any, weights: Any) -> Any:
        if not shown:
            shown.append(True)
            _show(state, features, labels)
        with jax.disable_jit():
            state, outputs = step.eager(state, features, labels, weights)
        number = int(np.asarray(state.clock)[0])
        for kind, tree in (("output", outputs), ("variable", state.variables), ("model state", state.model_state)):
            if found := _not_finite(tree):
                given = _not_finite({"features": features, "labels": labels, "weights": weights})
                raise NanLossDuringTrainingError(
                    f"NaN loss during training: {kind} {found} after step {number}, the first such value of the run. "
                    f"In the batch of this step {given or 'all values are finite, so the model produced it'}.",
                    step=number,
                )
        return state, outputs

    return lambda count: run


def _not_finite(tree: object) -> str:
    """Returns the name, shape and index of the first value that is not finite; "" if all values are finite."""
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        array = np.asarray(leaf)
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            place = tuple(int(index) for index in np.argwhere(~np.isfinite(array))[0])
            name = jax.tree_util.keystr(path, simple=True, separator="/")
            return f"{name!r} (shape {list(array.shape)}) is {array[place]} at {list(place)}"
    return ""


def _show(state: Any, features: Any, labels: Any) -> None:
    named = jax.tree_util.tree_leaves_with_path(
        {"features": features, "labels": labels, "variables": state.variables, "model_state": state.model_state}
    )
    lines = [
        f"  {jax.tree_util.keystr(path, simple=True, separator='/')}: {np.asarray(leaf).dtype}{list(np.shape(leaf))}"
        for path, leaf in named
    ]
    _log.info("debug: steps run without compilation\n%s", "\n".join(lines))
