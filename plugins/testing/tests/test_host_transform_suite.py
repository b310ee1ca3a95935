"""The host-transform suite passes sound transforms and catches broken ones."""

from pathlib import Path

import numpy as np
import pytest

from estimator_testing import HostTransformSuite
from plugins.testing.tests.sound_transform import Vocabulary


class TestVocabulary(HostTransformSuite):
    @pytest.fixture(autouse=True)
    def words(self, tmp_path: Path):
        self.file = tmp_path / "words.txt"
        self.file.write_text("one\ntwo\nthree\n")

    def make(self):
        return Vocabulary("text", words=self.file)

    def batch(self):
        return {"text": np.array(["one", "two", "four", "three"]), "x": np.arange(4.0)}


@pytest.mark.slow
def test_broken_transforms_are_caught(assert_each_is_caught):
    assert_each_is_caught("transforms")
