"""The contract of streaming metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self, runtime_checkable

import jax

from estimator_core._metrics.totals import merge_totals

if TYPE_CHECKING:
    import numpy as np


@runtime_checkable
class Metric(Protocol):
    """A metric of the examples seen so far: a pytree that merges with another of its kind and computes its value.

    A class that keeps this contract is a frozen dataclass registered with `jax.tree_util.register_dataclass`. Its tree
    structure, shapes and dtypes never depend on the batch (metrics made by `on_host` excepted), so that the evaluation
    step can carry it on the device.
    """

    def merge(self, other: Self) -> Self:
        """The metric of both sets of examples together, those of this one and of `other`. Pure, traceable, and the same
        in any order and grouping.
        """
        ...

    def compute(self) -> float | np.ndarray:
        """The value, on the host and in float64: a float for a scalar, else a numpy array."""
        ...


class TotalsMetric:
    """Base of metrics whose fields are exact totals (see `totals.py`), which merge by addition.

    Example:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> from dataclasses import dataclass
        >>> from estimator_core._metrics.base import TotalsMetric
        >>> from estimator_core._metrics.totals import total
        >>> from estimator_core._metrics.totals import total_value
        >>> @jax.tree_util.register_dataclass
        ... @dataclass(frozen=True, kw_only=True)
        ... class Count(TotalsMetric):
        ...     examples: jax.Array
        ...
        ...     def compute(self):
        ...         return float(total_value(self.examples))
        >>> count = Count(examples=total(jnp.ones(3, bool)))
        >>> count.merge(count).compute()
        6.0
    """

    def merge(self, other: Self) -> Self:
        """The metric of both sets of examples together."""
        return jax.tree.map(merge_totals, self, other)
