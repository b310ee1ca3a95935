"""The state on the device and the position of the input, which an Estimator keeps between and during its calls."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from estimator_core._checkpoint.catalog import checkpoint_step, manifest_digest
from estimator_core._inputs import InputPosition
from estimator_core._loop.dispatch import Dispatch, Program
from estimator_core._step.state import FIRST_BAD_STEP, Packing, TrainState
from estimator_core.errors import HookError

if TYPE_CHECKING:
    from estimator_core._step.carried import CarriedTables

#: The stop reason of a run whose input has ended.
INPUT_ENDED = "the input ended"
_copied = jax.jit(jnp.copy)  # takes a tenth of the time of jnp.copy by itself


def whole_on_host(value: Any) -> np.ndarray:
    """Returns a copy of an array in host memory.

    If it is distributed over processes, all of them must call this together.
    """
    if value.is_fully_addressable or value.is_fully_replicated:
        return np.array(value)
    from jax.experimental import multihost_utils

    return np.asarray(multihost_utils.process_allgather(value, tiled=True))


def is_readable(state: TrainState) -> bool:
    """Returns whether this process can read the variables without the others."""
    values = (*state.variables.values(), *state.model_state.values())
    return all(value.is_fully_addressable or value.is_fully_replicated for value in values)


class DeviceState:
    """The newest state of a run. An Estimator has one, which its calls fill, train and drop.

    Args:
        state: the state on the device. The next training step donates it, so nothing else may keep it.
        step: the global step, known on the host without waiting for the device.

    Attributes:
        checkpoint_step: the step of the newest checkpoint to which this state was saved or from which it was restored.
        checkpoint_version: the version of the state in that checkpoint.
        checkpoint_digest: the digest of its manifest; None while it is not committed, or if it cannot be read.
        has_slots: whether `state.opt_state` belongs to the training optimizer (False after a prediction-only restore).
        carried: the state in the form of the training program: packed if that is cheaper, otherwise `state` itself.
        position: the input position after the last consumed batch, or None.
        version: a number that changes each time another state replaces this one. Training steps do not count: `(step,
            version)` identifies the values of the variables.
    """

    def __init__(self, state: TrainState | None = None, step: int = 0) -> None:
        self._versions = 0
        self._trainer: int | None = None  # the thread that trains it
        self._readers: list[int] = []  # threads that read its arrays for a whole evaluation
        self.start(state, step)

    def start(
        self,
        state: TrainState | None,
        step: int = 0,
        *,
        checkpoint_step: int | None = None,
        has_slots: bool = False,
    ) -> None:
        """Starts again with a state.

        Args:
            state: see the class.
            step: see the class.
            checkpoint_step: see the attribute.
            has_slots: see the attribute.
        """
        self.carried: Any = state
        self.step = step
        self.checkpoint_step = checkpoint_step
        self.has_slots = has_slots
        self.position: InputPosition | None = None
        self._packing: Packing | CarriedTables | None = None
        self._unpacked: tuple[Any, TrainState] | None = None  # the packed state and the unpacked one
        self._note_change()
        self.checkpoint_version = self.version
        self.checkpoint_digest: str | None = None

    @contextlib.contextmanager
    def trained_here(self) -> Generator[None]:
        """Inside the block, this thread trains the state. While another thread reads its arrays, steps use copies."""
        # Set before readers are checked. A later reader sees it and reads a checkpoint instead.
        before, self._trainer = self._trainer, threading.get_ident()
        try:
            if before is None and self._readers:
                self.carried = jax.tree.map(_copy_of, self.carried)
            yield
        finally:
            self._trainer = before

    @contextlib.contextmanager
    def read_here(self) -> Generator[None]:
        """Inside the block, this thread may read arrays of the state, even if another thread begins to train."""
        own = threading.get_ident()
        self._readers.append(own)
        try:
            yield
        finally:
            self._readers.remove(own)

    @property
    def trained_elsewhere(self) -> bool:
        """Whether another thread trains the state. If so, its arrays may be deleted at any moment."""
        return self._trainer not in (None, threading.get_ident())

    def is_in(self, newest: str | None) -> bool:
        """Returns whether the newest checkpoint of the model_dir (None without one) is the one of this state.

        A run of another process may have replaced it by one of the same step.
        """
        if newest is None or self.checkpoint_step is None:
            return newest is None and self.checkpoint_step is None
        known = self.checkpoint_digest
        return checkpoint_step(newest) == self.checkpoint_step and known in (None, manifest_digest(Path(newest)))

    def forget(self) -> None:
        """Drops the state after a failure, because its buffers may be deleted. The newest checkpoint then counts."""
        self.start(None)

    @property
    def state(self) -> TrainState | None:
        """The state. It is unpacked when it is first requested."""
        if self._packing is None or not self._packing.holds(self.carried):
            return self.carried
        if self._unpacked is None or self._unpacked[0] is not self.carried:
            self.carried = self._packing.settled(self.carried)
            self._unpacked = self.carried, self._packing.unpack(self.carried)
        return self._unpacked[1]

    @state.setter
    def state(self, state: TrainState) -> None:
        self._note_change()
        self._set(state)

    def carry(self, packing: Packing | CarriedTables | None) -> None:
        """Packs the state for the training program from now on. None: the program receives the state unchanged."""
        if packing is not self._packing:
            state = self.ready
            self._packing, self._unpacked = packing, None
            self._set(state)

    @property
    def ready(self) -> TrainState:
        """The state, which must exist."""
        assert self.state is not None
        return self.state

    def advance(self, programs: Mapping[int, Program], dispatch: Dispatch) -> dict[str, Any]:
        """Runs the steps of a dispatch. Returns its outputs, which the device may still compute.

        Args:
            programs: the compiled functions by number of steps. They donate the state.
            dispatch: the batches.
        """
        features, labels, weights, steps, last = dispatch
        self.carried, values = programs[steps](self.carried, features, labels, weights)
        self.position = last.position
        self.step += steps
        return values

    def note_end_of_input(self) -> str:
        """Records that the input has ended. Returns this as the reason to stop."""
        self.position = None if self.position is None else self.position._replace(exhausted=True)
        return INPUT_ENDED

    def assign(self, values: Mapping[str, Any]) -> None:
        """Replaces variables and model state, by path, with host or device arrays of the same shapes.

        Raises:
            HookError: a path does not exist, or a shape differs.
        """
        state = self.ready
        known = state.by_path
        placed: dict[str, Any] = {}
        for path, value in values.items():
            if path not in known:
                raise HookError(f"There is no variable {path!r} to assign to. Variables: {sorted(known)}.")
            if value.shape != known[path].shape:
                raise HookError(f"Variable {path!r} has shape {known[path].shape}, but the value has {value.shape}.")
            placed[path] = _like(known[path], value)
        self.state = _with(state, placed)

    def land(self, state: TrainState, step: int, position: InputPosition | None) -> None:
        """Replaces the state with one of the same form that was trained elsewhere, with its step and input position."""
        self.state = jax.tree.map(_like, self.ready, state)
        self.step, self.position = step, position

    @contextlib.contextmanager
    def swapped(self, values: Mapping[str, object]) -> Generator[None]:
        """Inside the block, some variables have other values. Then the previous state and version are restored."""
        state, version = self.ready, self.version
        self.state = _with(state, values)
        try:
            yield
        finally:
            self._set(state)
            self.version = version

    def first_bad_step(self) -> int:
        """Returns the first step whose loss was not finite, or 0. Waits for the device."""
        return int(np.asarray(self.carried.clock)[FIRST_BAD_STEP])

    def first_bad_step_so_far(self) -> Callable[[], int]:
        """Returns a function with the current result of `first_bad_step`.

        Later steps may donate the state before it is called.
        """
        clock = _copied(self.carried.clock)
        return lambda: int(np.asarray(clock)[FIRST_BAD_STEP])

    def snapshot(self) -> TrainState:
        """Returns a copy of the state for prediction, which later training steps do not change."""
        state = self.ready
        return state._replace(
            **jax.tree.map(
                jnp.copy, {"clock": state.clock, "variables": state.variables, "model_state": state.model_state}
            ),
            opt_state=(),
        )

    def _set(self, state: TrainState) -> None:
        if self._packing is None or not self._packing.fits(state):
            self.carried = state
        else:
            self.carried = self._packing.pack(state)
            self._unpacked = self.carried, state

    def _note_change(self) -> None:
        self._versions += 1
        self.version = self._versions


def _with(state: TrainState, values: Mapping[str, object]) -> TrainState:
    return state._replace(
        variables={path: values.get(path, value) for path, value in state.variables.items()},
        model_state={path: values.get(path, value) for path, value in state.model_state.items()},
    )


def _copy_of(array: Any) -> Any:
    return jax.device_put(array, array.sharding, may_alias=False)


def _like(current: Any, value: Any) -> Any:
    """Returns a copy of the value with the dtype and devices of the current one. The copy can be donated."""
    host = np.asarray(value).astype(current.dtype)
    if current.is_fully_addressable:
        return jax.device_put(np.array(host), current.sharding, may_alias=False)
    return jax.make_array_from_callback(host.shape, current.sharding, lambda index: host[index])
