"""States of a run that has no checkpoint, and what a state lacks for training."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from estimator_core._backends import Devices
from estimator_core._cluster.together import chief_says
from estimator_core._loop.placing import clock_on_device, on_device
from estimator_core._loop.programs import Programs, state_shardings
from estimator_core._model.initialize import initialize
from estimator_core._model.variables import VariableSpec
from estimator_core._step import Discovery, TrainState, initial_clock
from estimator_core._step.initial_state import initial_opt_state
from estimator_core._step.precision import scales_loss
from estimator_core._step.state import clock_seed

#: Replaces initial values by path: `(values, specs, discovery, seed) -> changed values`.
Overrides = Callable[[Mapping[str, Any], Mapping[str, VariableSpec], Discovery, int], Mapping[str, Any]]


def fresh_state(
    devices: Devices, programs: Programs, discovery: Discovery, overrides: Overrides, *, seed: int
) -> TrainState:
    """A state of initial values, without optimizer slots.

    Args:
        devices: where it lives.
        programs: of the Estimator; every variable they know gets a value.
        discovery: of the mode that needs the state.
        overrides: initial values from elsewhere.
        seed: of the run; of several processes, that of process 0 counts: each may have drawn its own.
    """
    placement, specs = devices.placement, programs.specs
    seed = chief_says(devices.processes, "seed", seed)
    values: dict[str, Any] = dict(initialize(specs, seed, out_shardings=placement.variables(specs)))
    for name, value in overrides(values, specs, discovery, seed).items():
        values[name] = on_device(placement, value, specs[name])
    return TrainState(clock_on_device(placement, initial_clock(seed)), *_split(values, specs), ())


def completed(
    devices: Devices, programs: Programs, discovery: Discovery, state: TrainState, *, has_slots: bool
) -> TrainState:
    """The state with what training needs and earlier modes did not declare: further variables, and optimizer slots.

    Returns:
        The very same state where nothing is missing.
    """
    placement, specs = devices.placement, programs.specs
    missing = {
        name: spec for name, spec in specs.items() if name not in state.variables and name not in state.model_state
    }
    if missing:
        values = initialize(missing, clock_seed(state.clock), out_shardings=placement.variables(missing))
        variables, model_state = _split({**state.variables, **state.model_state, **values}, specs)
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


def _split(values: Mapping[str, Any], specs: Mapping[str, VariableSpec]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Trainable variables, and model state."""
    variables = {name: value for name, value in values.items() if specs[name].trainable}
    return variables, {name: value for name, value in values.items() if not specs[name].trainable}
