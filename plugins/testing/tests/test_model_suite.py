"""The suite for models passes a sound one and catches broken ones."""

import pytest

from estimator_testing import ModelSuite
from plugins.testing.tests.sound_model import SoundModel, examples


class TestSoundModel(ModelSuite):
    def make(self, config):
        return SoundModel(config)

    def examples(self, rng):
        return examples(rng)


@pytest.mark.slow
def test_broken_models_are_caught(assert_each_is_caught):
    assert_each_is_caught("models")
