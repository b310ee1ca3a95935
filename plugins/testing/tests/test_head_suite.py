"""The head suite passes a sound head and catches broken ones."""

from estimator_testing import HeadSuite
from plugins.testing.tests.sound_head import SoundHead


class TestSoundHead(HeadSuite):
    def make(self):
        return SoundHead()

    def labels(self, rng, batch):
        return rng.integers(0, 3, size=batch)


class TestWeightedHead(TestSoundHead):
    def with_weights(self, features, weights):
        return {**features, "w": weights}


class TestNamedHead(HeadSuite):
    def make(self):
        return SoundHead(name="topic")

    def labels(self, rng, batch):
        return rng.integers(0, 3, size=batch)


def test_broken_heads_are_caught(assert_each_is_caught):
    assert_each_is_caught("heads")
