"""Host arrays on the devices of a run, where their variables belong."""

from __future__ import annotations

import sys
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
    where = placement.variables({spec.name: spec})
    return put_all(placement, {spec.name: value}, where, {spec.name: spec.dtype})[spec.name]


def put_all(
    placement: Placement, values: Mapping[str, Any], shardings: Mapping[str, Any] | None, dtypes: Mapping[str, Any]
) -> dict[str, jax.Array]:
    """Copies on the devices of host arrays, or of arrays that lie in packs: of these each process reads its part alone.

    Args:
        placement: where to.
        values: by name.
        shardings: by name; None with one device.
        dtypes: by name; what has another one is converted.
    """
    stored = {name: value for name, value in values.items() if _lies_in_packs(value)}
    found: dict[str, jax.Array] = {}
    if stored:
        from estimator_core._packs.place import place

        found = place(stored, shardings, dtypes)
    for name in values.keys() - stored:
        if shardings is None:
            found[name] = jnp.array(values[name], dtype=dtypes[name], copy=True)
        else:
            found[name] = placement.put(np.asarray(values[name], dtypes[name]), shardings[name])
    return {name: found[name] for name in values}


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
        specs = {name: programs.specs[name] for name in values}
        dtypes = {name: spec.dtype for name, spec in specs.items()}
        return put_all(placement, values, placement.variables(specs), dtypes)

    clock = clock_on_device(placement, items.clock)
    return TrainState(clock, place_all(items.variables), place_all(items.model_state), opt_state)


def _lies_in_packs(value: Any) -> bool:
    packs = sys.modules.get("estimator_core._packs.stored")  # nothing lies in packs before some have been opened
    return packs is not None and isinstance(value, packs.StoredArray)
