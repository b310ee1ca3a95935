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
        state, outputs = step.eager(state, features, labels, weights)
        number = int(np.asarray(state.clock)[0])
        for kind, tree in (("output", outputs), ("variable", state.variables), ("model state", state.model_state)):
            if found := _not_finite(tree):
                batch = {"features": features, "labels": labels, "weights": weights}
                alone = jax.process_count() == 1
                finite = "all values are finite, so the model produced it" if alone else "this process has none"
                raise NanLossDuringTrainingError(
                    f"NaN loss during training: {kind} {found} after step {number}, the first such value of the run. "
                    f"In the batch of this step {_not_finite(batch) or finite}.",
                    step=number,
                )
        return state, outputs

    return lambda count: run


def _not_finite(tree: object) -> str:
    """Returns the name, shape and index of the first value that is not finite; "" if all values are finite."""
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        for first, part in _parts(leaf):
            if part.dtype.kind == "f" and not np.isfinite(part).all():
                place = tuple(int(index) for index in np.argwhere(~np.isfinite(part))[0])
                name = jax.tree_util.keystr(path, simple=True, separator="/")
                whole = [start + index for start, index in zip(first, place, strict=True)]
                return f"{name!r} (shape {list(np.shape(leaf))}) is {part[place]} at {whole}"
    return ""


def _parts(leaf: Any) -> list[tuple[list[int], np.ndarray]]:
    """Returns the parts of an array that this process has, each with the place of its first value."""
    if not isinstance(leaf, jax.Array):
        return [([0] * np.ndim(leaf), np.asarray(leaf))]
    return [([cut.start or 0 for cut in shard.index], np.asarray(shard.data)) for shard in leaf.addressable_shards]


def _show(state: Any, features: Any, labels: Any) -> None:
    named = jax.tree_util.tree_leaves_with_path(
        {"features": features, "labels": labels, "variables": state.variables, "model_state": state.model_state}
    )
    lines = [
        f"  {jax.tree_util.keystr(path, simple=True, separator='/')}: {leaf.dtype}{list(np.shape(leaf))}"
        for path, leaf in named
    ]
    _log.info("debug: steps run without compilation\n%s", "\n".join(lines))
