"""Recurrent layers over sequences of different lengths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from estimator_canned_tabular.layers.cells import RecurrentCell


def recurrent(
    cells: Sequence[RecurrentCell], inputs: jax.Array, mask: jax.Array, *, scope: str, return_sequences: bool
) -> jax.Array:
    """Runs stacked cells. Returns the output of the last valid step, float32[batch, units], or of every step.

    Args:
        cells: the cells from the lowest to the highest.
        inputs: the inputs, float32[batch, steps, size].
        mask: the valid steps, bool[batch, steps]. In other steps, states and outputs do not change.
        scope: the prefix of the names of the cells' variables.
        return_sequences: whether to return every step, float32[batch, steps, units].
    """
    batch = inputs.shape[0]
    parameters: list[Any] = []
    states: list[Any] = []
    size = inputs.shape[2]
    for number, cell in enumerate(cells):
        parameters.append(cell.parameters(f"{scope}/layer_{number}", size))
        states.append(cell.initial_state(batch))
        size = _output_size(cell, parameters[-1], size, states[-1])

    def step(carry: Any, given: Any) -> tuple[Any, Any]:
        previous, before = carry
        outputs, valid = given
        after: list[Any] = []
        for cell, own, state in zip(cells, parameters, before, strict=True):
            outputs, state = cell.step(own, outputs, state)
            after.append(state)

        def kept(new: jax.Array, old: jax.Array) -> jax.Array:
            return jnp.where(valid.reshape(-1, *(1,) * (new.ndim - 1)), new, old)

        outputs = kept(outputs, previous)
        return (outputs, jax.tree.map(kept, after, before)), outputs

    start = (jnp.zeros((batch, size)), states)
    (last, _), every = jax.lax.scan(step, start, (jnp.swapaxes(inputs, 0, 1), jnp.swapaxes(mask, 0, 1)))
    return jnp.swapaxes(every, 0, 1) if return_sequences else last


def _output_size(cell: RecurrentCell, parameters: Any, size: int, state: Any) -> int:
    row = jax.tree.map(lambda part: jax.ShapeDtypeStruct((1, *part.shape[1:]), part.dtype), state)
    output, _ = jax.eval_shape(cell.step, parameters, jax.ShapeDtypeStruct((1, size), jnp.float32), row)
    return output.shape[-1]
