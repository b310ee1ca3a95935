"""The module-adapter suite passes a sound adapter and catches broken ones."""

import numpy as np

from estimator_core.testing import ModuleAdapterSuite
from tests.testing_kit.affine_library import Affine
from tests.testing_kit.sound_adapter import AffineAdapter


class TestAffineAdapter(ModuleAdapterSuite):
    def make(self):
        return AffineAdapter()

    def module(self):
        return Affine(3)

    def inputs(self, rng):
        return rng.normal(size=(4, 2)).astype(np.float32)


def test_broken_adapters_are_caught(assert_each_is_caught):
    assert_each_is_caught("adapters")
