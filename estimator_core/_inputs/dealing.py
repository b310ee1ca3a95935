"""Global batches of all processes. Each process supplies the rows that its own devices hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import jax
import numpy as np

from estimator_core._inputs.context import InputContext
from estimator_core._inputs.foreign import Walk
from estimator_core._inputs.normalise import Parts
from estimator_core._inputs.padding import Mask, unpadded


class Dealt(NamedTuple):
    """This process's rows of a global batch.

    Attributes:
        mask: the rows of this process; `size` counts the examples of all processes.
        total: rows of the global batch.
    """

    mask: Mask
    total: int


Deal: TypeAlias = Callable[[Parts, Callable[[Parts], Mask]], Dealt]


def dealing(context: InputContext, opened: Walk) -> tuple[Walk, Deal | None]:
    """The walk of one of several processes, and the function that selects its rows of each batch.

    The function takes a batch and a masking function. It pads a whole batch as one process would pad it, and then
    selects this process's rows. It is None if the input has divided itself. The position then belongs to this process
    and to this division.
    """
    drawn = opened.global_rows
    if drawn is None and not opened.options.whole:
        process = f"process={context.input_pipeline_id}/{context.num_input_pipelines}"
        return opened._replace(fingerprint=lambda: f"{opened.fingerprint()}; {process}"), None

    def deal(parts: Parts, masked: Callable[[Parts], Mask]) -> Dealt:
        total = parts.rows if drawn is None else drawn()
        if parts.rows < total:
            weights = None if masked is unpadded else np.ones(parts.rows, np.float32)
            return Dealt(Mask(parts, weights, total), total)
        whole = masked(parts)
        return Dealt(_own_rows(whole, context), whole.parts.rows)

    return opened, deal


def _own_rows(whole: Mask, context: InputContext) -> Mask:
    rows = context.rows(whole.parts.rows)
    if len(rows) == whole.parts.rows:
        return whole

    def own(array: np.ndarray) -> np.ndarray:
        return array[rows] if array.ndim else array

    (features, labels, host, _), weights, size = whole
    features, labels, weights = jax.tree.map(own, (features, labels, weights))
    return Mask(Parts(features, labels, {name: own(value) for name, value in host.items()}, len(rows)), weights, size)
