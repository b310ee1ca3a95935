"""What an Estimator holds between and during its calls: the state on the device, and where its input stands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from estimator_core._step.packing import Packed, Packing
from estimator_core._step.state import FIRST_BAD_STEP, TrainState

_copied = jax.jit(jnp.copy)  # a tenth of the time of jnp.copy by itself


def whole_on_host(value: Any) -> np.ndarray:
    """A copy of an array in host memory; of one that is spread over processes, if all of them ask at once."""
    if value.is_fully_addressable or value.is_fully_replicated:
        return np.array(value)
    from jax.experimental import multihost_utils

    return np.asarray(multihost_utils.process_allgather(value, tiled=True))


class LiveState:
    """The newest state of a run, owned by one Estimator.

    Args:
        state: on the device; donated to the next training step, so nobody else keeps it.
        step: the global step, known on the host without asking the device.
        checkpoint_step: the step of the newest checkpoint this state was saved to or restored from.
        has_slots: whether `state.opt_state` belongs to the training optimizer (False after a prediction-only restore).

    Attributes:
        carried: the state as the training program takes it: `state` itself, or packed.
        position: the input position after the last consumed batch, or None.
    """

    def __init__(
        self,
        state: TrainState | None = None,
        step: int = 0,
        *,
        checkpoint_step: int | None = None,
        has_slots: bool = False,
    ) -> None:
        self.carried: Any = state
        self.step = step
        self.checkpoint_step = checkpoint_step
        self.has_slots = has_slots
        self.position: Any = None
        self._packing: Packing | None = None
        self._unpacked: tuple[Any, TrainState] | None = None  # with what was unpacked

    @property
    def state(self) -> TrainState | None:
        """The state; unpacked when it is first asked for."""
        if self._packing is None or not isinstance(self.carried, Packed):
            return self.carried
        if self._unpacked is None or self._unpacked[0] is not self.carried:
            self._unpacked = self.carried, self._packing.unpack(self.carried)
        return self._unpacked[1]

    @state.setter
    def state(self, state: TrainState) -> None:
        if self._packing is None or not self._packing.fits(state):
            self.carried = state
        else:
            self.carried = self._packing.pack(state)
            self._unpacked = self.carried, state

    def carry(self, packing: Packing | None) -> None:
        """Packs the state for the training program from now on; None: the program takes it as it is."""
        if packing is not self._packing:
            state = self.ready
            self._packing, self._unpacked = packing, None
            self.state = state

    @property
    def ready(self) -> TrainState:
        """The state, which must be there."""
        assert self.state is not None
        return self.state

    def first_bad_step(self) -> int:
        """The first step whose loss was not finite, 0 if none; waits for the device."""
        return int(np.asarray(self.carried.clock)[FIRST_BAD_STEP])

    def first_bad_step_so_far(self) -> Callable[[], int]:
        """`first_bad_step` as of now, to be asked when the state has been donated to later steps."""
        clock = _copied(self.carried.clock)
        return lambda: int(np.asarray(clock)[FIRST_BAD_STEP])

    def snapshot(self) -> TrainState:
        """A copy of what prediction needs, which later training steps do not touch."""
        state = self.ready
        return state._replace(
            **jax.tree.map(
                jnp.copy, {"clock": state.clock, "variables": state.variables, "model_state": state.model_state}
            ),
            opt_state=(),
        )
