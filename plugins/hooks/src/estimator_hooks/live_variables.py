"""The variables of a run under way, on its devices."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING, Any, cast

from estimator_core.errors import HookError
from estimator_core.hooks import Run

if TYPE_CHECKING:
    from estimator_core._loop.device_state import DeviceState
    from estimator_core._loop.run import LoopRun
    from estimator_core._step.state import TrainState


def live_state(run: Run) -> TrainState:
    """The state on the devices. The next step donates it: keep nothing of it."""
    return _live(run).ready


def assign_variables(run: Run, values: Mapping[str, Any]) -> None:
    """Replaces variables by path; the next step starts from the new values.

    Args:
        run: a training run, in `after_create` or `after_step`.
        values: trainable variables and model state by path, host or device arrays of the same shapes.

    Raises:
        HookError: a path that does not exist, or another shape.
    """
    state = live_state(run)
    known = {**state.variables, **state.model_state}
    placed: dict[str, Any] = {}
    for path, value in values.items():
        if path not in known:
            raise HookError(f"There is no variable {path!r} to assign to. Variables: {sorted(known)}.")
        if value.shape != known[path].shape:
            raise HookError(f"Variable {path!r} has shape {known[path].shape}, the value to assign {value.shape}.")
        placed[path] = _like(known[path], value)
    _live(run).assign(placed)


def _live(run: Run) -> DeviceState:
    return cast("LoopRun", run).live


def _like(current: Any, value: Any) -> Any:
    """A copy of the value with the dtype and on the devices of the current one; the copy can be donated."""
    import jax
    import numpy as np

    host = np.asarray(value).astype(current.dtype)
    if current.is_fully_addressable:
        return jax.device_put(np.array(host), current.sharding, may_alias=False)
    return jax.make_array_from_callback(host.shape, current.sharding, lambda index: host[index])


@contextlib.contextmanager
def swapped_variables(run: Run, values: Mapping[str, Any]) -> Generator[None]:
    """Evaluations inside see other values of some trainable variables; nothing is copied.

    Args:
        run: a training run, in `after_create`, `after_step` or `end`.
        values: device arrays by path.
    """
    with _live(run).swapped(values):
        yield
