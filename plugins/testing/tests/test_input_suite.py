"""The input suite passes the core's inputs and catches broken ones."""

import numpy as np

from estimator_core.inputs import numpy_input_fn
from estimator_testing import InputSuite


class TestShuffled(InputSuite):
    def make(self):
        return self.epochs(1)

    def epochs(self, count):
        features = {"x": np.arange(22.0).reshape(11, 2), "word": np.array([f"word {i}" for i in range(11)])}
        return numpy_input_fn(features, np.arange(11), batch_size=3, num_epochs=count, shuffle=True, seed=3)


class TestPadded(InputSuite):
    def make(self):
        return self.epochs(1)

    def epochs(self, count):
        x = np.arange(11)
        return numpy_input_fn({"x": x}, x, batch_size=4, num_epochs=count, shuffle=False, ragged="pad")


class TestForeignIterable(InputSuite):
    shards = False

    def make(self):
        batches = [({"x": np.full((2, 1), i)}, np.array([i, i])) for i in range(4)]
        return lambda: batches


def test_broken_inputs_are_caught(assert_each_is_caught):
    assert_each_is_caught("inputs")
