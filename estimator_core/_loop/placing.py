"""Host arrays on the devices of a run, where their variables belong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from estimator_core._backends import Placement
from estimator_core._checkpoint import CheckpointItems
from estimator_core._loop.programs import Programs
from estimator_core._model.variables import VariableSpec
from estimator_core._step import TrainState


def on_device(placement: Placement, value: Any, spec: VariableSpec) -> jax.Array:
    """A copy of a host array on the devices."""
    shardings = placement.variables({spec.name: spec})
    if shardings is None:
        return jnp.array(value, dtype=spec.dtype, copy=True)
    return placement.put(np.asarray(value, spec.dtype), shardings[spec.name])


def clock_on_device(placement: Placement, clock: Any) -> jax.Array:
    """A copy of a clock, whole on every device."""
    return jnp.array(clock, copy=True) if placement.single else placement.replicate(clock)


def placed(placement: Placement, programs: Programs, items: CheckpointItems, opt_state: Any = ()) -> TrainState:
    """The state that a checkpoint holds, on the devices.

    Args:
        placement: where to.
        programs: learns the variables it does not know.
        items: of the checkpoint, compared with the declared variables.
        opt_state: the optimizer's state, placed already.
    """
    programs.adopt(items.variables, trainable=True)
    programs.adopt(items.model_state, trainable=False)

    def place_all(values: Mapping[str, Any]) -> dict[str, jax.Array]:
        return {name: on_device(placement, value, programs.specs[name]) for name, value in values.items()}

    clock = clock_on_device(placement, items.clock)
    return TrainState(clock, place_all(items.variables), place_all(items.model_state), opt_state)
