"""The state of a fresh run, and its optimizer slots."""

from __future__ import annotations

from collections.abc import Mapping

import jax

from estimator_core._step.discovery import Discovery
from estimator_core._step.optimizer import init_opt_state
from estimator_core._types import PyTree


def initial_opt_state(
    discovery: Discovery, variables: Mapping[str, jax.Array], shardings: PyTree = None, *, scaled: bool = False
) -> PyTree:
    """The optimizer state of a fresh run, computed on the variables' devices.

    Args:
        discovery: of the TRAIN mode.
        variables: their values.
        shardings: of the optimizer state: each device computes its part only; None with one device.
        scaled: whether the scale of the loss belongs to it.
    """
    if discovery.train_op is None:
        return ()
    train_op, tables = discovery.train_op, discovery.tables
    compute = jax.jit(lambda values: init_opt_state(train_op, values, tables, scaled=scaled), out_shardings=shardings)
    return compute(dict(variables))
