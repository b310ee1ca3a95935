"""The accuracy of always predicting the more frequent of two classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import jax

from estimator_core.metrics import Mean, mean

if TYPE_CHECKING:
    from jax.typing import ArrayLike


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class AccuracyBaseline(Mean):
    """The larger of a mean and its complement."""

    def compute(self) -> float:
        """Returns max(mean, 1 - mean), or 0.0 if the total weight is 0."""
        share = super().compute()
        return max(share, 1.0 - share) if self._has_weight() else 0.0

    def _has_weight(self) -> bool:
        return bool((self.weight != 0).any())


def accuracy_baseline(labels: ArrayLike, weights: ArrayLike | None = None) -> AccuracyBaseline:
    """Returns the best accuracy of a constant prediction.

    Args:
        labels: numbers in [0, 1], [batch, ...].
        weights: a scalar, [batch], [batch, 1] or the full shape.

    Example:
        >>> import numpy as np
        >>> accuracy_baseline(np.array([0, 1, 0, 1, 1])).compute()
        0.6
    """
    share = mean(labels, weights)
    return AccuracyBaseline(total=share.total, weight=share.weight)
