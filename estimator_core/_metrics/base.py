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

    A class that implements this contract is a frozen dataclass registered with `jax.tree_util.register_dataclass`. Its
    tree structure, shapes and dtypes never depend on the batch, so that the evaluation step can keep it on the device.
    Metrics made by `on_host` are an exception.
    """

    def merge(self, other: Self) -> Self:
        """Returns the metric of the examples of this metric and of `other` together.

        It is pure and traceable, and the result does not depend on order or grouping.
        """
        ...

    def compute(self) -> float | np.ndarray:
        """Returns the value, computed on the host in float64: a float for a scalar, otherwise a numpy array."""
        ...


class TotalsMetric:
    """Base class of metrics whose fields are exact totals (see `totals.py`), which merge by addition.

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
        """Returns the metric of both sets of examples together."""
        return jax.tree.map(merge_totals, self, other)
