"""The suite for formats passes a sound one and catches broken ones."""

import pytest

from estimator_testing import ExportFormatSuite
from plugins.testing.tests.sound_format import SoundFormat


class TestSoundFormat(ExportFormatSuite):
    def make(self):
        return SoundFormat()


@pytest.mark.slow
def test_broken_formats_are_caught(assert_each_is_caught):
    assert_each_is_caught("formats")
