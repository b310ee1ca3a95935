"""A training run whose steps other code makes, such as a population. `estimator_core.lowering` exports it."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from estimator_core._inputs import InputPosition
from estimator_core._loop.run import LoopRun
from estimator_core.errors import HookError
from estimator_core.hooks import Run


def land(run: Run, state: Any, position: InputPosition | None) -> None:
    """Takes a training run to the state that other code has trained from the run's own. A hook calls it, in
    `after_create`; the run then continues there, and saves and records as after steps of its own.

    Args:
        run: the run.
        state: a tree like `run.state`; its clock says the step.
        position: of the input, after the last batch of that step.

    Raises:
        HookError: the state is not of this run, or of an earlier step.
    """
    if not isinstance(run, LoopRun) or run.step != run.first_step:
        raise HookError("land is called in `after_create` of a training run, before its first step.")
    known, step = run.live.ready, int(np.asarray(state.clock)[0])
    if jax.tree.map(np.shape, state) != jax.tree.map(np.shape, known):
        raise HookError("The state to land with differs in its names or shapes from the state of the run.")
    if step <= run.step:
        raise HookError(f"The run stands at step {run.step}; it cannot continue at step {step}.")
    run.live.land(state, step, position)
    run.step = step
