"""The suite for exporters passes a sound one and catches broken ones."""

from estimator_testing import ExporterSuite
from plugins.testing.tests.sound_exporter import SoundExporter


class TestSoundExporter(ExporterSuite):
    def make(self):
        return SoundExporter()


def test_broken_exporters_are_caught(assert_each_is_caught):
    assert_each_is_caught("exporters")
