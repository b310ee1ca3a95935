"""The suite for exporters passes a sound one and catches broken ones."""

from pathlib import Path

from estimator_testing import ExporterSuite
from plugins.testing.tests.sound_exporter import SoundExporter


class RenamingExporter(SoundExporter):
    """Numbers its exports: v0001, v0002 and so on."""

    def export(self, estimator, export_path, *rest):
        path = super().export(estimator, export_path, *rest)
        if path is None:
            return None
        taken = [int(one.name[1:]) for one in Path(export_path).glob("v*")]
        return str(Path(path).rename(Path(export_path) / f"v{max(taken, default=0) + 1:04}"))


class TestRenamingExporter(ExporterSuite):
    def make(self):
        return RenamingExporter()


class TestSoundExporter(ExporterSuite):
    def make(self):
        return SoundExporter()


def test_broken_exporters_are_caught(assert_each_is_caught):
    assert_each_is_caught("exporters")
