"""The rule for weights of examples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from estimator_heads.data.number_labels import NumberLabels
from estimator_heads.data.rule import Array, DataRule, Fault

#: The limit for weights with a normalizer, which may make a valid weight of any number.
_ANY = float("-inf")
_CURE = "Correct the weight: 0 leaves the row out of loss and metrics."


@dataclass(frozen=True, kw_only=True)
class ExampleWeights:
    """Weights that are finite numbers of at least `low`.

    Example:
        >>> import numpy as np
        >>> ExampleWeights().fault(np.array([1.0, -2.0]), None).row
        1
    """

    low: float = 0.0
    learns: bool = False

    def part(self, array: Array) -> Array:
        """Returns nothing, because nothing is learned."""
        return array[:0]

    def learn(self, parts: Sequence[Array]) -> Any:
        """Returns nothing, because nothing is learned."""
        return None

    def passes(self, array: Array, known: Any) -> bool:
        """Returns whether all weights are finite floats of at least `low`."""
        return NumberLabels(low=self.low).passes(array, known)

    def fault(self, array: Array, known: Any) -> Fault | None:
        """Returns the first weight that is not a finite number of at least `low`, or None."""
        found = NumberLabels(low=self.low).fault(array, known)
        if found is None:
            return None
        return Fault(row=found.row, value=found.value, problem=found.problem, cure=_CURE)

    def convert(self, array: Array, known: Any) -> Array:
        """Returns weights unchanged, and objects as numbers."""
        return array.astype(np.float32) if array.dtype.kind == "O" else array


def weight_rules(weight_column: Any) -> dict[str, DataRule]:
    """Returns the rule of the `weight_column` of a head, by the name of the feature. Empty without such a column.

    Example:
        >>> weight_rules("share")
        {'share': ExampleWeights(low=0.0, learns=False)}
    """
    if weight_column is None:
        return {}
    if isinstance(weight_column, str):
        return {weight_column: ExampleWeights()}
    normalizer = getattr(weight_column, "normalizer_fn", None)
    return {weight_column.key: ExampleWeights() if normalizer is None else ExampleWeights(low=_ANY)}
