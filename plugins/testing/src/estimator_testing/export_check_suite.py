"""The suite for export checks."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from estimator_core.export import ExportCheck
from estimator_testing.leaks import leaving_nothing, loading
from estimator_testing.other_seed import same_under_another_seed
from estimator_testing.suite import Suite

_SAME: tuple[np.ndarray[Any, Any], ...] = (
    np.array([1.0, -2.5, 1e6], np.float32),
    np.array([np.nan, np.inf, -np.inf], np.float32),
    np.array([[1.0, 2.0]], ml_dtypes.bfloat16),
    np.arange(4, dtype=np.int32),
    np.array([True, False]),
    np.zeros((0, 3), np.float32),
    np.float32(0.5) * np.ones(()),
)


class ExportCheckSuite(Suite):
    """Proves that a check accepts correct exports and rejects wrong ones. Subclass it and implement `make`.

    Example:
        >>> from estimator_core.export import CloseOutputs
        >>> class TestLoose(ExportCheckSuite):
        ...     def make(self):
        ...         return CloseOutputs(tolerance=0.1)
    """

    def make(self) -> ExportCheck:
        """Returns the check. It is called several times."""
        raise NotImplementedError(f"{type(self).__name__} must define make(self)")

    def test_is_an_export_check(self) -> None:
        """It has the method of ExportCheck."""
        assert isinstance(self.make(), ExportCheck), f"{self.make()!r} has no method `difference`"

    @pytest.mark.parametrize("array", _SAME, ids=lambda array: f"{array.dtype}{list(array.shape)}")
    def test_equal_outputs_pass(self, array: np.ndarray[Any, Any]) -> None:
        """Equal outputs pass: of any shape and dtype, empty, or with NaN and infinity in the same places."""
        assert self.make().difference(array, array.copy()) is None

    def test_another_shape_is_kept_back(self) -> None:
        """Outputs of another shape are a difference, even if they could be broadcast."""
        self._differs(np.ones((3, 1), np.float32), np.ones((3,), np.float32))
        self._differs(np.ones((3, 2), np.float32), np.ones((1, 2), np.float32))

    def test_nonsense_is_kept_back(self) -> None:
        """Other magnitudes, and zeros or NaN instead of numbers, are differences, wherever they occur."""
        expected = np.linspace(1.0, 2.0, 12, dtype=np.float32).reshape(3, 4)
        self._differs(expected, np.zeros_like(expected))
        self._differs(expected, 1e3 * expected)
        last = expected.copy()
        last[-1, -1] = np.nan
        self._differs(expected, last)

    def test_changes_nothing_it_is_given(self) -> None:
        """The check does not change the arrays."""
        expected, found = np.arange(3.0), np.array([0.0, 1.0, 5.0])
        self.make().difference(expected, found)
        np.testing.assert_array_equal(expected, np.arange(3.0))
        np.testing.assert_array_equal(found, [0.0, 1.0, 5.0])

    def test_another_hash_seed(self, request: pytest.FixtureRequest) -> None:
        """With another seed of string hashes, as in the next process, it finds the same differences."""
        ones = np.ones((2, 3), np.float32)
        pairs = [(ones, ones), (ones, 1e3 * ones), (ones, np.zeros_like(ones)), (ones, ones[0])]
        same_under_another_seed(request, [self.make().difference(*pair) for pair in pairs])

    def test_leaves_nothing_behind(self) -> None:
        """A comparison changes nothing in the process, such as numpy's treatment of errors."""
        pairs = [(one, one.copy()) for one in _SAME] + [(np.ones(3), np.full(3, np.nan))]
        with loading():
            self.make().difference(*pairs[0])
        with leaving_nothing("after comparisons, the check"):
            for expected, found in pairs:
                self.make().difference(expected, found)

    def _differs(self, expected: np.ndarray[Any, Any], found: np.ndarray[Any, Any]) -> None:
        text = self.make().difference(expected, found)
        assert isinstance(text, str), f"it accepts {found.tolist()} instead of {expected.tolist()}"
        assert text.strip(), "it finds a difference, but does not say which"
