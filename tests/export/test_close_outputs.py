"""Tests of the differences that the comparison of an export with its model accepts."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import estimator_core as ec

CHECK: Any = ec.export.CloseOutputs()


class TestCloseOutputs:
    """Tests of the differences that the comparison accepts."""

    check = CHECK

    @pytest.mark.parametrize(
        ("dtype", "close", "far"),
        [(np.float32, 5e-6, 5e-5), (ml_dtypes.bfloat16, 1e-2, 5e-2), (np.float16, 2e-3, 1e-2)],
    )
    def test_the_tolerance_is_of_the_dtype(self, dtype: Any, close: float, far: float) -> None:
        expected = np.ones(3, dtype)
        assert self.check.difference(expected, (np.ones(3) + close).astype(dtype)) is None
        assert "instead of" in self.check.difference(expected, (np.ones(3) + far).astype(dtype))

    def test_it_is_a_share_of_the_largest_value(self) -> None:
        expected = np.array([1e6, 1.0, np.inf])
        assert self.check.difference(expected, expected + np.array([5.0, 5.0, 0.0])) is None
        assert self.check.difference(expected, expected + np.array([0.0, 50.0, 0.0])) is not None

    def test_what_is_no_number_must_be_at_the_same_places(self) -> None:
        expected = np.array([np.nan, np.inf, 1.0])
        assert self.check.difference(expected, expected) is None
        assert "at [0] is 0.0 instead of nan (1 of 3" in self.check.difference(expected, np.array([0.0, np.inf, 1.0]))

    def test_integers_must_be_equal(self) -> None:
        assert self.check.difference(np.arange(3), np.arange(3)) is None
        assert self.check.difference(np.arange(3), np.array([0, 1, 3])) is not None


def test_imaginary_parts_are_compared() -> None:
    expected = np.array([1 + 1j, 2 + 2j], np.complex64)
    assert CHECK.difference(expected, expected + np.complex64(1e-6j)) is None
    far = CHECK.difference(expected, expected + np.array([0, 1j], np.complex64))
    assert "at [1] is (2+3j) instead of (2+2j) (1 of 2" in far
    assert CHECK.difference(expected.real, expected) is not None
