"""Tests of the state of an Estimator: its version, and what one process of several may read of it."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from estimator_core._loop.device_state import DeviceState
from estimator_core._loop.inference_state import InferenceStates
from estimator_core._loop.programs import Programs
from estimator_core._step import TrainState, initial_clock


@pytest.fixture
def live() -> DeviceState:
    variables = {"w": jnp.zeros(2), "b": jnp.ones(())}
    return DeviceState(TrainState(jnp.asarray(initial_clock(1)), variables, {"mean": jnp.zeros(())}, ()), step=3)


def values(live: DeviceState) -> list[Any]:
    state = live.ready
    return [np.asarray(value).tolist() for value in (*state.variables.values(), *state.model_state.values())]


def test_assigning_makes_another_version(live: DeviceState) -> None:
    before, carried = live.version, live.carried
    live.carried = carried  # as a training step does
    assert live.version == before
    live.assign({"w": jnp.full(2, 5.0), "mean": jnp.float32(7)})
    assert values(live) == [[5, 5], 1, 7]
    assert live.version != before


def test_swapped_values_leave_the_version_as_it_was(live: DeviceState) -> None:
    before, state = live.version, live.ready
    with live.swapped({"w": jnp.full(2, 5.0)}):
        inside = live.version
        assert values(live) == [[5, 5], 1, 0]
    assert (live.version, live.ready) == (before, state)
    assert inside != before
    live.assign({"w": jnp.ones(2)})
    assert live.version not in (before, inside)


def test_a_start_drops_what_was_there(live: DeviceState) -> None:
    live.checkpoint_step, live.has_slots, before = 3, True, live.version
    live.forget()
    assert (live.state, live.step, live.checkpoint_step, live.has_slots) == (None, 0, None, False)
    assert live.version != before


def test_one_of_several_processes_may_ask_for_the_live_state(live: DeviceState, tmp_path: Path) -> None:
    def agree(processes: object) -> None:
        raise AssertionError("the others have not asked")

    programs: Any = Programs(SimpleNamespace())  # type: ignore[arg-type]
    states = InferenceStates(programs, live, str(tmp_path), None, agree)
    devices = SimpleNamespace(processes=SimpleNamespace(count=2, index=0), apart=False)
    context: Any = SimpleNamespace(devices=devices, training=False)
    assert states.at_hand(context) is live.ready
