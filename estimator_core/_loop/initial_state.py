"""Places host arrays on the devices, creates the state of a run without a checkpoint, and completes a state for
training.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from estimator_core._backends import Devices, Placement
from estimator_core._checkpoint import CheckpointItems
from estimator_core._cluster.processes import chief_says
from estimator_core._loop.programs import Programs, state_shardings
from estimator_core._model.initialize import initialize
from estimator_core._model.variables import VariableSpec
from estimator_core._plugins import Plugins
from estimator_core._step import Discovery, TrainState, initial_clock
from estimator_core._step.discovery import initial_opt_state
from estimator_core._step.precision import scales_loss
from estimator_core._step.state import clock_seed
from estimator_core.errors import ArgumentTypeError

if TYPE_CHECKING:
    from estimator_core._model.initial_values import InitialValues


def warm_start_source(warm_start_from: object, plugins: Plugins) -> InitialValues | None:
    """Returns the initial values for the argument `warm_start_from` of an Estimator.

    Args:
        warm_start_from: initial values, or the path of a checkpoint for the component `warm_start`, or None.
        plugins: the registry that provides this component.

    Raises:
        ArgumentTypeError: `warm_start_from` has another type.
        PluginLookupError: no installed package reads the path. The message names a package that can.
    """
    if warm_start_from is None:
        return None
    from estimator_core._model.initial_values import InitialValues

    if isinstance(warm_start_from, InitialValues) and not isinstance(warm_start_from, type):
        return warm_start_from
    if isinstance(warm_start_from, str | os.PathLike):
        return plugins.get("initial_values", plugins.default("initial_values", "warm_start"))(warm_start_from)
    raise ArgumentTypeError(
        f"warm_start_from must be a string or a WarmStartSettings, instead got {type(warm_start_from)}."
    )


def on_device(placement: Placement, value: object, spec: VariableSpec) -> jax.Array:
    """Returns a copy on the devices of an array that other code may keep and change."""
    where = placement.variables({spec.name: spec})
    if where is None and not _lies_in_packs(value):
        return jnp.array(value, dtype=spec.dtype, copy=True)
    return put_all(placement, {spec.name: value}, where, {spec.name: spec.dtype})[spec.name]


def put_all(
    placement: Placement, values: Mapping[str, Any], shardings: Mapping[str, Any] | None, dtypes: Mapping[str, Any]
) -> dict[str, jax.Array]:
    """Puts arrays on the devices: host arrays, or arrays in packs, of which each process reads only its own part.

    Args:
        placement: the placement on the devices.
        values: the arrays by name. A CPU device may use the memory of host arrays, so no other code may keep them. A
            dict is emptied, so that each host array is free once it is on the devices.
        shardings: the shardings, by name. None with one device.
        dtypes: the dtypes, by name. Arrays of another dtype are converted.
    """
    stored = {name: value for name, value in values.items() if _lies_in_packs(value)}
    found: dict[str, jax.Array] = {}
    if stored:
        from estimator_core._packs.place import place

        found = place(stored, shardings, dtypes)
    names = list(values)
    for name in values.keys() - stored:
        value = values.pop(name) if isinstance(values, dict) else values[name]
        if shardings is None:
            put = _put(value, dtypes[name], placement)
        else:
            put = _put_in_parts(value, dtypes[name], placement, shardings[name])
        found[name] = jax.block_until_ready(put)  # otherwise the host arrays would stay in use
    return {name: found[name] for name in names}


def _put_in_parts(value: Any, dtype: Any, placement: Placement, sharding: Any) -> jax.Array:
    if not jnp.issubdtype(dtype, jax.dtypes.prng_key):
        return placement.put(np.asarray(value, dtype), sharding)
    data = placement.put(jax.random.key_data(value), sharding)  # numpy cannot represent a typed random key
    return jax.random.wrap_key_data(data, impl=jax.random.key_impl(value))


def _put(value: object, dtype: np.dtype, placement: Placement) -> jax.Array:
    if isinstance(value, jax.Array):  # typed random keys
        return jnp.array(value, dtype=dtype, copy=True)
    # jnp.array would copy it twice. Without the mesh, its type differs from that of the result of the step, which would
    # be compiled twice.
    return jax.device_put(np.asarray(value, dtype), placement.replicated)


def clock_on_device(placement: Placement, clock: object) -> jax.Array:
    """Returns a copy of a clock, whole on every device."""
    # jnp.array would compile a program for the copy.
    return jax.device_put(np.array(clock), placement.replicated) if placement.single else placement.replicate(clock)


def placed(placement: Placement, programs: Programs, items: CheckpointItems, opt_state: object = ()) -> TrainState:
    """Returns the state of a checkpoint, on the devices.

    Args:
        placement: the placement on the devices.
        programs: the programs of the Estimator. They receive the variables that they do not know.
        items: the items of the checkpoint, which are compared with the declared variables.
        opt_state: the optimizer state, already on the devices.
    """
    programs.adopt(items.variables, trainable=True)
    programs.adopt(items.model_state, trainable=False)

    def place_all(values: Mapping[str, object]) -> dict[str, jax.Array]:
        specs = {name: programs.specs[name] for name in values}
        dtypes = {name: spec.dtype for name, spec in specs.items()}
        return put_all(placement, values, placement.variables(specs), dtypes)

    clock = clock_on_device(placement, items.clock)
    return TrainState(clock, place_all(items.variables), place_all(items.model_state), opt_state)


def _lies_in_packs(value: object) -> bool:
    packs = sys.modules.get("estimator_core._packs.fetch")  # no array is in packs before some have been opened
    return packs is not None and isinstance(value, packs.StoredArray)


def fresh_state(
    devices: Devices,
    programs: Programs,
    discovery: Discovery,
    warm_start: InitialValues | None,
    plugins: Plugins,
    *,
    seed: int,
) -> TrainState:
    """Returns a state of initial values, without optimizer slots.

    Args:
        devices: the devices of the state.
        programs: the programs of the Estimator. Every variable that they know gets a value.
        discovery: the discovery of the mode that needs the state.
        warm_start: the source of initial values. Requests of model_fn override it.
        plugins: the registry that a source uses to read a URL or a path.
        seed: the seed of the run. With several processes, the seed of process 0 counts, because each may have drawn a
            different one.
    """
    placement, specs = devices.placement, programs.specs
    seed = chief_says(devices.processes, "seed", seed)
    values: dict[str, Any] = dict(initialize(specs, seed, out_shardings=placement.variables(specs)))
    if warm_start is not None or discovery.asks_for_values:
        from estimator_core._loop.initial_values import initial_overrides

        for name, value in initial_overrides(warm_start, plugins, values, specs, discovery, seed).items():
            values[name] = on_device(placement, value, specs[name])
    return TrainState(clock_on_device(placement, initial_clock(seed)), *_split(values, specs), ())


def completed(
    devices: Devices, programs: Programs, discovery: Discovery, state: TrainState, *, has_slots: bool
) -> TrainState:
    """Adds variables that earlier modes did not declare, and optimizer slots, to the state for training.

    Returns:
        The same object if nothing is missing.
    """
    placement, specs = devices.placement, programs.specs
    missing = {
        name: spec for name, spec in specs.items() if name not in state.variables and name not in state.model_state
    }
    if missing:
        values = initialize(missing, clock_seed(state.clock), out_shardings=placement.variables(missing))
        variables, model_state = _split({**state.by_path, **values}, specs)
        state = state._replace(variables=variables, model_state=model_state)
    if not has_slots:
        shardings = state_shardings(placement, discovery)
        slots = initial_opt_state(
            discovery,
            state.variables,
            None if shardings is None else shardings.opt_state,
            scaled=scales_loss(devices.config.precision),
        )
        state = state._replace(opt_state=slots)
    return state


def _split(values: Mapping[str, object], specs: Mapping[str, VariableSpec]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Splits values into trainable variables and model state."""
    variables = {name: value for name, value in values.items() if specs[name].trainable}
    return variables, {name: value for name, value in values.items() if not specs[name].trainable}
