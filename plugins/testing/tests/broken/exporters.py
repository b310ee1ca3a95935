"""Exporters that break their contract, each in one way; `fails` names the tests of the suite that catch it."""

import contextlib
import json
import os
import shutil
from pathlib import Path

from estimator_testing import ExporterSuite
from plugins.testing.tests.sound_exporter import SoundExporter


class Suite(ExporterSuite):
    fails = ()
    Broken: type[SoundExporter] = SoundExporter

    def make(self):
        return self.Broken()


class TestNameIsAPath(Suite):
    fails = ("test_is_an_exporter",)

    class Broken(SoundExporter):
        name = "exports/lowest"


class TestNameOfTheObject(Suite):
    fails = ("test_is_an_exporter",)

    class Broken(SoundExporter):
        @property
        def name(self):
            return f"lowest {id(self)}"

    def make(self):
        self.kept = [*getattr(self, "kept", []), self.Broken()]
        return self.kept[-1]


class TestNeverExports(Suite):
    fails = ("test_exports_in_the_course_of_a_training", "test_goes_on_in_a_resumed_training")

    class Broken(SoundExporter):
        def export(self, *arguments):
            return None


class TestReturnsTheExportPath(Suite):
    fails = ("test_returns_what_it_wrote",)

    class Broken(SoundExporter):
        def export(self, estimator, export_path, *rest):
            return super().export(estimator, export_path, *rest) and export_path


class TestWritesElsewhere(Suite):
    fails = ("test_returns_what_it_wrote",)

    class Broken(SoundExporter):
        def export(self, estimator, export_path, *rest):
            return super().export(estimator, f"{export_path}-elsewhere", *rest)


class TestExportsTheNewest(Suite):
    fails = ("test_exports_the_checkpoint_it_is_given",)

    class Broken(SoundExporter):
        def export(self, estimator, export_path, checkpoint_path, *rest):
            return super().export(estimator, export_path, None, *rest)


class TestFinalAlwaysExports(Suite):
    fails = ("test_one_step_is_exported_once",)

    class Broken(SoundExporter):
        def export(self, estimator, export_path, checkpoint_path, eval_result, is_the_final_export):
            return estimator.export_saved_model(export_path, None, checkpoint_path=checkpoint_path)


class TestTakesTheStepOut(Suite):
    fails = ("test_results_are_left_alone",)

    class Broken(SoundExporter):
        def export(self, estimator, export_path, checkpoint_path, eval_result, is_the_final_export):
            eval_result.pop("global_step")
            return super().export(estimator, export_path, checkpoint_path, eval_result, is_the_final_export)


class TestStartsAfresh(Suite):
    fails = ("test_goes_on_in_a_resumed_training",)

    class Broken(SoundExporter):
        def export(self, estimator, export_path, checkpoint_path, *rest):
            path = super().export(estimator, export_path, checkpoint_path, *rest)
            for other in Path(export_path).glob("1*"):
                shutil.rmtree(other)
            return path


class TestClearsItsDirectory(Suite):
    fails = ("test_other_files_are_left_alone",)

    class Broken(SoundExporter):
        def export(self, estimator, export_path, *rest):
            shutil.rmtree(export_path, ignore_errors=True)
            return super().export(estimator, export_path, *rest)


class TestSwallowsErrors(Suite):
    fails = ("test_failure_is_not_hidden",)

    class Broken(SoundExporter):
        def export(self, *arguments):
            try:
                return super().export(*arguments)
            except Exception:
                return None


class TestBestInMemoryAlone(Suite):
    fails = ("test_a_restart_changes_nothing",)

    class Broken(SoundExporter):
        lowest = float("inf")

        def export(self, estimator, export_path, checkpoint_path, eval_result, is_the_final_export):
            if not eval_result["loss"] < self.lowest:
                return None
            self.lowest = eval_result["loss"]
            return estimator.export_saved_model(export_path, None, checkpoint_path=checkpoint_path)


class TestNanIsTheBest(Suite):
    fails = ("test_nan_is_not_an_improvement",)

    class Broken(SoundExporter):
        def export(self, estimator, export_path, checkpoint_path, eval_result, is_the_final_export):
            memory = Path(export_path) / "lowest.json"
            if memory.is_file() and eval_result["loss"] >= json.loads(memory.read_text())["loss"]:
                return None
            path = estimator.export_saved_model(export_path, None, checkpoint_path=checkpoint_path)
            self.remember(memory, eval_result["loss"])
            return path


class TestNothingIsBetterThanNan(Suite):
    """Keeps a NaN in the first evaluation as the best result."""

    fails = ("test_nan_is_not_an_improvement",)

    class Broken(SoundExporter):
        def export(self, estimator, export_path, checkpoint_path, eval_result, is_the_final_export):
            memory = Path(export_path) / "lowest.json"
            if memory.is_file() and not eval_result["loss"] < json.loads(memory.read_text())["loss"]:
                return None
            path = estimator.export_saved_model(export_path, None, checkpoint_path=checkpoint_path)
            self.remember(memory, eval_result["loss"])
            return path


class TestTornIndex(Suite):
    fails = ("test_killed_while_it_writes",)

    class Broken(SoundExporter):
        def remember(self, memory, loss):
            memory.write_text(json.dumps({"loss": loss}))


class TestReturnsNothing(Suite):
    fails = ("test_returns_what_it_wrote",)

    class Broken(SoundExporter):
        def export(self, *arguments):
            super().export(*arguments)


class TestKeepsAFileOpen(Suite):
    fails = ("test_leaves_nothing_behind",)

    class Broken(SoundExporter):
        def export(self, estimator, export_path, *rest):
            self.log = os.open(__file__, os.O_RDONLY)
            return super().export(estimator, export_path, *rest)


class TestGoesOnWithAFullDisk(Suite):
    """Keeps the lowest loss only in memory after it failed to write its file."""

    fails = ("test_the_disk_fails_while_it_writes",)

    class Broken(SoundExporter):
        best = float("inf")

        def export(self, estimator, export_path, checkpoint_path, eval_result, is_the_final_export):
            if not eval_result["loss"] < self.best:
                return None
            return super().export(estimator, export_path, checkpoint_path, eval_result, is_the_final_export)

        def remember(self, memory, loss):
            self.best = loss
            with contextlib.suppress(OSError):
                super().remember(memory, loss)


class TestFileNamedByAHash(Suite):
    fails = ("test_another_hash_seed",)

    class Broken(SoundExporter):
        def remember(self, memory, loss):
            super().remember(memory.with_name(f"{hash('lowest')}.json"), loss)
