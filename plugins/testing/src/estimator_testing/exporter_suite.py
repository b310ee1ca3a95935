"""The suite for exporters."""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from estimator_core.config import RunConfig
from estimator_core.errors import ExportError
from estimator_core.export import Exporter
from estimator_core.summaries import append_eval_metrics
from estimator_testing.leaks import leaving_nothing, loading
from estimator_testing.other_seed import same_under_another_seed
from estimator_testing.suite import Suite
from estimator_testing.torn_writes import Killed, TornWrites


class FakeExporting:
    """A substitute for an Estimator that writes empty exports and remembers them.

    Attributes:
        exports: the pairs (directory, checkpoint path) of all exports, in order. An exporter may rename the directory.
        fails: whether an export raises an error.
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
        """Creates a directory, named by a time stamp like an export."""
        if self.fails:
            raise ExportError("the disk is full")
        stamps = [int(path.name) for path in Path(export_dir_base).glob("*") if path.name.isdigit()]
        directory = Path(export_dir_base) / str(max([_FIRST_STAMP, *stamps]) + 1)
        directory.mkdir(parents=True)
        (directory / "manifest.json").write_text(json.dumps({"number": len(self.exports)}))
        self.exports.append((str(directory), checkpoint_path))
        return str(directory)

    def made_as(self, directory: str | None) -> int | None:
        """Returns the number of the export in a directory, whatever its name is now, or None."""
        manifest = Path(directory or "", "manifest.json")
        return json.loads(manifest.read_text())["number"] if directory and manifest.is_file() else None

    def eval_dir(self, name: str | None = None) -> str:
        """Returns the directory of an evaluation's results."""
        return str(Path(self.model_dir) / ("eval" if not name else f"eval_{name}"))


class ExporterSuite(Suite):
    """Proves that an exporter exports the right checkpoint to the right place, and changes nothing else.

    The suite evaluates three times with falling loss, then ends the training.

    Example:
        >>> class TestMyExporter(ExporterSuite):
        ...     def make(self):
        ...         return MyExporter("mine", serving_input_receiver_fn=lambda: None)
    """

    def make(self) -> Exporter:
        """Returns the exporter. It is called several times. Its receiver function may return None."""
        raise NotImplementedError(f"{type(self).__name__} must define make(self)")

    def results(self) -> list[dict[str, Any]]:
        """Returns the results of the evaluations, with rising `global_step`. Override it for an exporter of others."""
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
        """It returns the path of the export that it has just written, below its export path, or None without one."""
        estimator, exporter = FakeExporting(tmp_path), self.make()
        for result, final in self._calls(self.results()):
            before = len(estimator.exports)
            path = self._call(exporter, estimator, result, final)
            if len(estimator.exports) == before:
                assert path is None, f"it returned {path!r}, but wrote nothing"
            else:
                assert estimator.made_as(path) == before, f"it returned {path!r}, but the new export is not there"
                assert path is not None
                assert Path(path).is_relative_to(self._path(tmp_path)), f"it wrote elsewhere: {path}"

    def test_exports_the_checkpoint_it_is_given(self, tmp_path: Path) -> None:
        """Every export is made from the checkpoint of its evaluation, even if a newer one exists by then."""
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
        """It does not change the result of the evaluation, because other exporters see it too."""
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
        """Files of others in its directory stay, even if it deletes its own."""
        path = Path(self._path(tmp_path))
        (path / "notes").mkdir(parents=True)
        (path / "notes" / "mine.txt").write_text("keep")
        (path / "readme.txt").write_text("keep")
        for _ in range(3):
            self._train(tmp_path)
            assert (path / "notes" / "mine.txt").read_text() == "keep"
            assert (path / "readme.txt").read_text() == "keep"

    def test_failure_is_not_hidden(self, tmp_path: Path) -> None:
        """A failed export raises an error: a training without its export must not look like a success."""
        estimator = FakeExporting(tmp_path)
        estimator.fails = True
        with pytest.raises(ExportError, match="the disk is full"):
            self._run(self.make(), estimator)

    def test_a_restart_changes_nothing(self, tmp_path: Path) -> None:
        """A new object before each evaluation exports the same checkpoints as one object for all. Results rise and
        fall. The best result so far is on disk.
        """
        for number, order in enumerate(_ORDERS):
            course = self._course(order)
            one = self._exported(tmp_path / f"one-{number}", course)
            many = self._exported(tmp_path / f"many-{number}", course, restarts=True)
            assert many == one, f"started again before each evaluation, it exports {many}, otherwise {one}"

    def test_nan_is_not_an_improvement(self, tmp_path: Path) -> None:
        """An exporter that declines worse results also declines NaN, and exports better results after it."""
        course = self._course((0, 1, 2))
        taken = {
            value: self._exported(tmp_path / str(value), [*course, _at(_with_numbers(course[-1], value), 40)])
            for value in (1e9, -1e9)
        }
        if len(taken[1e9]) == len(taken[-1e9]):
            return  # it does not compare results
        worse = min(taken, key=lambda value: len(taken[value]))
        expected = self._exported(tmp_path / "worse", self._mixed(course, worse))
        among = self._exported(tmp_path / "nan", self._mixed(course, float("nan")))
        assert among == expected, f"among results of NaN it exports {among}, among worse results {expected}"
        first = self._exported(tmp_path / "first", [_at(_with_numbers(course[0], float("nan")), 5), *course])
        missing = [checkpoint for checkpoint in self._exported(tmp_path / "all", course) if checkpoint not in first]
        assert not missing, f"after a first result of NaN it does not export {missing}"

    def test_killed_while_it_writes(self, tmp_path: Path) -> None:
        """If it is killed in the middle of any of its own writes and restarted, it exports the same checkpoints. It
        does not trust an incomplete file.
        """
        course = self._course(_ORDERS[-1])
        expected = self._exported(tmp_path / "whole", course)
        for number in range(_MOST_WRITES):
            model_dir = tmp_path / f"killed-{number}"
            estimator, exporter = FakeExporting(model_dir), self.make()
            writes = TornWrites(model_dir / "export", at=number)
            for result, final in self._calls(course):
                try:
                    with writes.until_torn():
                        self._call(exporter, writes.leaving_alone(estimator), result, final)
                except Killed:
                    exporter = self.make()
                    self._call(exporter, estimator, result, final)
            missing = set(expected) - {checkpoint for _, checkpoint in estimator.exports}
            assert not missing, (
                f"killed in the middle of its write {number + 1}, it did not export {sorted(missing, key=str)}"
            )
            if not writes.torn:
                return

    @pytest.mark.parametrize("fault", [errno.ENOSPC, errno.EIO], ids=errno.errorcode.get)
    def test_the_disk_fails_while_it_writes(self, tmp_path: Path, fault: int) -> None:
        """If the disk is full or broken in any of its own writes, a new object exports the same checkpoints. It does
        not rely on data that was not written.
        """
        course = self._course(_ORDERS[-1])
        expected = self._exported(tmp_path / "whole", course)
        for number in range(_MOST_WRITES):
            model_dir = tmp_path / f"failed-{number}"
            estimator, exporter = FakeExporting(model_dir), self.make()
            writes = TornWrites(model_dir / "export", at=number, fault=OSError(fault, os.strerror(fault)))
            for result, final in self._calls(course):
                torn = writes.torn
                try:
                    with writes.until_torn():
                        self._call(exporter, writes.leaving_alone(estimator), result, final)
                except OSError:
                    self._call(self.make(), estimator, result, final)
                exporter = exporter if writes.torn == torn else self.make()
            made = [checkpoint for _, checkpoint in estimator.exports]
            assert set(made) == set(expected), (
                f"after {errno.errorcode[fault]} in its write {number + 1}, it exports {made}, otherwise {expected}"
            )
            if not writes.torn:
                return

    def test_another_hash_seed(self, tmp_path: Path, request: pytest.FixtureRequest) -> None:
        """With another seed of string hashes, as in the next process, it exports the same checkpoints. Its own files
        have the same names, so that a restarted training finds them.
        """
        exported = self._exported(tmp_path, self._course(_ORDERS[0]))
        folder = Path(self._path(tmp_path))
        files = [path for path in folder.rglob("*") if path.is_file()]
        own = [one for one in files if not any((above / "manifest.json").is_file() for above in one.parents)]
        same_under_another_seed(request, [exported, sorted(str(one.relative_to(folder)) for one in own)])

    def test_leaves_nothing_behind(self, tmp_path: Path) -> None:
        """After a training, even one whose last export fails, no thread runs, no file is open, and the state of the
        process is as before.
        """
        kept = [self.make(), self.make(), self.make()]  # the objects stay alive, and so does what they hold
        with loading():
            self._train(tmp_path / "first", kept[0])
        with leaving_nothing("after a training, the exporter"):
            self._train(tmp_path / "second", kept[1])
        with leaving_nothing("after an export that failed, the exporter"):
            estimator, _ = self._train(tmp_path / "third", kept[2])
            estimator.fails = True
            with contextlib.suppress(ExportError):
                self._call(kept[2], estimator, _at(self.results()[-1], 1000), final=True)

    def _train(self, tmp_path: Path, exporter: Exporter | None = None) -> tuple[FakeExporting, list[str | None]]:
        estimator = FakeExporting(tmp_path)
        return estimator, self._run(self.make() if exporter is None else exporter, estimator)

    def _run(self, exporter: Exporter, estimator: FakeExporting) -> list[str | None]:
        """Makes three evaluations, and repeats the last one as final."""
        return [self._call(exporter, estimator, result, final) for result, final in self._calls(self.results())]

    def _exported(self, model_dir: Path, course: list[dict[str, Any]], *, restarts: bool = False) -> list[str | None]:
        """Returns the checkpoints that are exported in a course of results."""
        estimator, exporter = FakeExporting(model_dir), self.make()
        for result, last in self._calls(course):
            exporter = self.make() if restarts and not last else exporter
            self._call(exporter, estimator, result, last)
        return [checkpoint for _, checkpoint in estimator.exports]

    def _call(self, exporter: Exporter, estimator: Any, result: Mapping[str, Any], final: bool) -> str | None:
        """Makes one call, after the evaluation is on record, as in `train_and_evaluate`."""
        model_dir, step = Path(estimator.model_dir), int(result["global_step"])
        if not final:
            append_eval_metrics(estimator.eval_dir(), step, dict(result), None)
        path = self._path(model_dir)
        return exporter.export(estimator, path, f"checkpoints/{step}", dict(result), final)

    def _calls(self, course: list[dict[str, Any]]) -> list[tuple[dict[str, Any], bool]]:
        return [*((result, False) for result in course), (course[-1], True)]

    def _mixed(self, course: list[dict[str, Any]], value: float) -> list[dict[str, Any]]:
        """Returns the course, with results between its own that have this value for every metric."""
        between = [_at(_with_numbers(one, value), one["global_step"] + 5) for one in course[:-1]]
        return sorted([*course, *between], key=lambda result: result["global_step"])

    def _course(self, order: tuple[int, ...]) -> list[dict[str, Any]]:
        """Returns the results in another order, at rising steps."""
        results = self.results()
        return [_at(results[place], 10 * number) for number, place in enumerate(order, start=1)]

    def _path(self, tmp_path: Path) -> str:
        return str(tmp_path / "export" / self.make().name)


def _at(result: dict[str, Any], step: int) -> dict[str, Any]:
    return {**result, "global_step": step}


def _with_numbers(result: dict[str, Any], value: float) -> dict[str, Any]:
    """Returns the result with a value for each of its metrics."""
    return {key: value if isinstance(old, float) else old for key, old in result.items()}


_FIRST_STAMP = 1_700_000_000
_COURSE = ((0.5, 10), (0.4, 20), (0.3, 30))
_ORDERS = ((1, 2, 0, 1), (2, 0, 1), (1, 0, 2))
#: The largest number of writes of a course that are torn, one at a time.
_MOST_WRITES = 30
