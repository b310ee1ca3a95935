"""The comparison of an export with its estimator that is made unless another is named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

_NARROW = MappingProxyType({"bfloat16": 2e-2, "float16": 5e-3})


@dataclass(frozen=True, kw_only=True)
class CloseOutputs:
    """Takes an output for the same if no value differs by more than a share of the largest.

    Args:
        tolerance: the share, of the largest finite entry or of 1 if that is smaller than 1.
        narrow: the share for outputs of certain dtypes, by their name.

    Example:
        >>> check = CloseOutputs()
        >>> check.difference(np.ones(2), np.array([1.0, 1.000001])) is None
        True
        >>> check.difference(np.ones(2), np.array([1.0, 1.1]))
        'at [1] is 1.1 instead of 1.0 (1 of 2 values differ by more than 1e-05).'
    """

    tolerance: float = 1e-5
    narrow: Mapping[str, float] = field(default_factory=lambda: _NARROW)

    def difference(self, expected: np.ndarray, found: np.ndarray) -> str | None:
        """Where the first value too far off is, and how far; None where all are close."""
        if expected.shape != found.shape:
            return f"has shape {found.shape} instead of {expected.shape}."
        relative = self.narrow.get(str(expected.dtype), self.tolerance)
        wide = expected.astype(np.float64), found.astype(np.float64)
        largest = float(np.max(np.abs(wide[0]), initial=0.0, where=np.isfinite(wide[0])))
        same = np.isclose(*wide, rtol=0, atol=relative * max(1.0, largest), equal_nan=True)
        if same.all():
            return None
        place = tuple(int(index) for index in np.argwhere(~same)[0])
        return (
            f"at {list(place)} is {found[place]} instead of {expected[place]} "
            f"({int((~same).sum())} of {same.size} values differ by more than {relative})."
        )
