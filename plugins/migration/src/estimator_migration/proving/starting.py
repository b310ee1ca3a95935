"""A hook that starts a run from the weights of the other side, and records its losses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import jax.numpy as jnp
import numpy as np

from estimator_core.checkpoint import CheckpointItems
from estimator_core.hooks import Hook, Run, StepOutputs
from estimator_migration.checkpoints.convert import convert
from estimator_migration.proving.computed import Arrays


class StartFrom(Hook):
    """Sets the weights before the first step.

    Args:
        there: the weights of the other side, by name there.
        names: the names that differ: the name there, by name here.
    """

    place: ClassVar[Literal["early", "normal", "late"]] = "early"

    def __init__(self, there: Arrays, names: Mapping[str, str]) -> None:
        self._there, self._names = there, names
        self.weights: Arrays = {}
        self.losses: list[float] = []

    def after_create(self, run: Run) -> None:
        """Replaces the initial weights of the run.

        Raises:
            CheckpointMismatchError: variables are missing there, or have another shape.
        """
        self.weights = self.placed(run, self._there)
        run.assign(self.weights)

    def placed(self, run: Run, there: Arrays) -> Arrays:
        """Returns the weights of the other side by their names here.

        Raises:
            CheckpointMismatchError: variables are missing there, or have another shape.
        """
        numbers = {path: value for path, value in run.state.model_state.items() if _is_float(value)}
        template = CheckpointItems(
            clock=np.zeros(4, np.uint32), variables=dict(run.state.variables), model_state=numbers
        )
        items = convert(template, there, self._names).items
        return {**items.variables, **items.model_state}

    def after_step(self, run: Run, step: int, out: StepOutputs) -> None:
        """Records the loss."""
        self.losses.append(float(out["loss"]))


def _is_float(value: Any) -> bool:
    """Returns whether a value is a weight. Seeds of random layers and counters are not."""
    return bool(jnp.issubdtype(value.dtype, jnp.floating))
