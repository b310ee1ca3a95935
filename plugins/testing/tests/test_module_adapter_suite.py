"""The module-adapter suite passes a sound adapter and catches broken ones."""

import numpy as np
import pytest

from estimator_testing import ModuleAdapterSuite
from plugins.testing.tests.affine_library import Affine
from plugins.testing.tests.sound_adapter import AffineAdapter


class TestAffineAdapter(ModuleAdapterSuite):
    def make(self):
        return AffineAdapter()

    def module(self):
        return Affine(3)

    def inputs(self, rng):
        return rng.normal(size=(4, 2)).astype(np.float32)


@pytest.mark.slow
def test_broken_adapters_are_caught(assert_each_is_caught):
    assert_each_is_caught("adapters")
