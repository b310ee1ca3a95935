"""The suite for formats passes a sound one and catches broken ones."""

from estimator_core.testing import ExportFormatSuite
from tests.testing_kit.sound_format import SoundFormat


class TestSoundFormat(ExportFormatSuite):
    def make(self):
        return SoundFormat()


def test_broken_formats_are_caught(assert_each_is_caught):
    assert_each_is_caught("formats")
