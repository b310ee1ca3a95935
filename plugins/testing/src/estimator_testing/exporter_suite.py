"""The suite for exporters."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from estimator_core.config import RunConfig
from estimator_core.errors import ExportError
from estimator_core.export import Exporter
from estimator_testing.suite import Suite


class FakeExporting:
    """Stands in for an Estimator: writes empty exports and remembers them.

    Attributes:
        exports: (directory, checkpoint path) of every export, in order.
        fails: raise instead of exporting.
    """

    def __init__(self, model_dir: Path) -> None:
        self.model_dir = str(model_dir)
        self.config = RunConfig(model_dir=str(model_dir))
        self.params: Any = None
        self.exports: list[tuple[str, str | None]] = []
        self.fails = False

    def export_saved_model(
        self,
        export_dir_base: str,
        serving_input_receiver_fn: Any,
        assets_extra: Mapping[str, str] | None = None,
        checkpoint_path: str | None = None,
        experimental_mode: str = "infer",
        *,
        format: str = "stablehlo",
    ) -> str:
        """Makes a new directory, named by a time stamp like an export."""
        if self.fails:
            raise ExportError("the disk is full")
        stamps = [int(path.name) for path in Path(export_dir_base).glob("*") if path.name.isdigit()]
        directory = Path(export_dir_base) / str(max([_FIRST_STAMP, *stamps]) + 1)
        directory.mkdir(parents=True)
        (directory / "manifest.json").write_text("{}")
        self.exports.append((str(directory), checkpoint_path))
        return str(directory)

    def eval_dir(self, name: str | None = None) -> str:
        """The directory of an evaluation's results."""
        return str(Path(self.model_dir) / ("eval" if not name else f"eval_{name}"))


class ExporterSuite(Suite):
    """Proves that an exporter exports the right checkpoint to the right place, and touches nothing else.

    The suite evaluates three times with falling loss, then ends the training.

    Example:
        >>> class TestMyExporter(ExporterSuite):
        ...     def make(self):
        ...         return MyExporter("mine", serving_input_receiver_fn=lambda: None)
    """

    def make(self) -> Exporter:
        """The exporter; called several times. Its receiver function may return None."""
        raise NotImplementedError(f"{type(self).__name__} must define make(self)")

    def results(self) -> list[dict[str, Any]]:
        """The results of the evaluations, with rising `global_step`. Override it if the exporter reads others."""
        return [
            {"loss": loss, "average_loss": loss, "accuracy": 1 - loss, "global_step": step} for loss, step in _COURSE
        ]

    def test_is_an_exporter(self) -> None:
        """It has a method `export` and a name that can be a directory, the same for all objects of `make`."""
        exporter = self.make()
        assert isinstance(exporter, Exporter), f"{exporter!r} lacks a member of Exporter"
        assert isinstance(exporter.name, str)
        assert exporter.name
        assert "/" not in exporter.name
        assert self.make().name == exporter.name

    def test_exports_in_the_course_of_a_training(self, tmp_path: Path) -> None:
        """A training whose results improve leaves at least one export."""
        estimator, returned = self._train(tmp_path)
        assert any(returned), "it exported nothing"
        assert len(estimator.exports) == len([path for path in returned if path])

    def test_returns_what_it_wrote(self, tmp_path: Path) -> None:
        """It returns the export just written, below its export path, or None if it wrote nothing."""
        estimator, returned = self._train(tmp_path)
        written = [directory for directory, _ in estimator.exports]
        assert [str(path) for path in returned if path] == written
        assert all(Path(directory).is_relative_to(self._path(tmp_path)) for directory in written), "it wrote elsewhere"

    def test_exports_the_checkpoint_it_is_given(self, tmp_path: Path) -> None:
        """Every export is made from the checkpoint of its evaluation: a newer one may exist by then."""
        estimator, returned = self._train(tmp_path)
        given = [
            f"checkpoints/{step}" for (_, step), path in zip((*_COURSE, _COURSE[-1]), returned, strict=True) if path
        ]
        assert [checkpoint for _, checkpoint in estimator.exports] == given

    def test_one_step_is_exported_once(self, tmp_path: Path) -> None:
        """Called again for the last step, as final, it does not export that step a second time."""
        estimator, _ = self._train(tmp_path)
        checkpoints = [checkpoint for _, checkpoint in estimator.exports]
        assert len(set(checkpoints)) == len(checkpoints), f"exported twice: {checkpoints}"

    def test_results_are_left_alone(self, tmp_path: Path) -> None:
        """It does not change the result of the evaluation: other exporters see it too."""
        estimator, exporter, result = FakeExporting(tmp_path), self.make(), self.results()[0]
        before = dict(result)
        exporter.export(estimator, self._path(tmp_path), "checkpoints/10", result, False)
        assert result == before

    def test_goes_on_in_a_resumed_training(self, tmp_path: Path) -> None:
        """A new object in the same directory continues: it keeps the exports, and exports none of their steps again."""
        estimator, exporter, path = FakeExporting(tmp_path), self.make(), self._path(tmp_path)
        first, second = self.results()[:2]
        done = exporter.export(estimator, path, "checkpoints/10", first, False)
        resumed = self.make().export(estimator, path, "checkpoints/20", second, True)
        assert done or resumed, "neither the first object nor the second exported"
        for directory in (done, resumed):
            assert directory is None or Path(directory).is_dir(), f"the export {directory} is gone"

    def test_other_files_are_left_alone(self, tmp_path: Path) -> None:
        """Files of others in its directory stay, whatever it deletes of its own."""
        path = Path(self._path(tmp_path))
        (path / "notes").mkdir(parents=True)
        (path / "notes" / "mine.txt").write_text("keep")
        (path / "readme.txt").write_text("keep")
        for _ in range(3):
            self._train(tmp_path)
            assert (path / "notes" / "mine.txt").read_text() == "keep"
            assert (path / "readme.txt").read_text() == "keep"

    def test_failure_is_not_hidden(self, tmp_path: Path) -> None:
        """An export that fails raises: a training without its export must not look like a success."""
        estimator = FakeExporting(tmp_path)
        estimator.fails = True
        with pytest.raises(ExportError, match="the disk is full"):
            self._run(self.make(), estimator, tmp_path)

    def _train(self, tmp_path: Path) -> tuple[FakeExporting, list[str | None]]:
        estimator = FakeExporting(tmp_path)
        return estimator, self._run(self.make(), estimator, tmp_path)

    def _run(self, exporter: Exporter, estimator: FakeExporting, tmp_path: Path) -> list[str | None]:
        """Makes three evaluations, and repeats the last one as final."""
        returned: list[str | None] = []
        results = self.results()
        calls = [*((result, False) for result in results), (results[-1], True)]
        for result, final in calls:
            checkpoint = f"checkpoints/{result['global_step']}"
            returned.append(exporter.export(estimator, self._path(tmp_path), checkpoint, dict(result), final))
        return returned

    def _path(self, tmp_path: Path) -> str:
        return str(tmp_path / "export" / self.make().name)


_FIRST_STAMP = 1_700_000_000
_COURSE = ((0.5, 10), (0.4, 20), (0.3, 30))
