"""Scoring with Apache Beam: RunInference with a ModelHandler that loads the export."""

from __future__ import annotations

import pickle
import shutil
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import estimator_core as ec
from estimator_core.storage import ObjectMissingError, copied_files, draft_of, is_url, published_file
from estimator_exporters.bundle.extras import lacking
from estimator_exporters.bundle.object_arrays import objects
from estimator_exporters.scoring.columns import columns_of, not_by_row
from estimator_exporters.scoring.pieces import Part, Piece, part_of, pieces_of
from estimator_exporters.scoring.plan import Plan, signature_of

try:
    import apache_beam as beam  # pyright: ignore[reportMissingImports]
    from apache_beam.ml.inference.base import (  # pyright: ignore[reportMissingImports]
        ModelHandler,
        PredictionResult,
        RunInference,
    )
    from apache_beam.options.pipeline_options import PipelineOptions  # pyright: ignore[reportMissingImports]
except ImportError as error:
    raise lacking("BeamScorer", "beam", error) from error

#: The in-process runner of Beam. The default runner of Beam first searches for a program to download.
LOCAL_RUNNER = "apache_beam.runners.portability.fn_api_runner.FnApiRunner"


class BeamScorer(ModelHandler):  # pyright: ignore[reportUntypedBaseClass]
    """Scores rows in a pipeline: `rows | RunInference(BeamScorer(EXPORT))`. A row is a mapping from names to values.

    A `PredictionResult` contains the row and its scores, under the column names that `estimator predict` writes.

    Args:
        export: the path or URL of an export that every worker can read.
        signature: the name of the signature.
        batch_size: the largest number of rows per batch.
    """

    def __init__(self, export: str, signature: str = "serving_default", *, batch_size: int = 1024) -> None:
        super().__init__(max_batch_size=batch_size)
        self._export, self._name = export, signature

    def load_model(self) -> Any:
        """Loads the signature, once per process.

        Raises:
            ArgumentError: the signature does not exist.
            ExportError: the export cannot be read.
        """
        return signature_of(ec.export.load(self._export), self._name)

    def run_inference(
        self, batch: Sequence[Mapping[str, Any]], model: Any, inference_args: dict[str, Any] | None = None
    ) -> Iterable[Any]:
        """Returns one result per row.

        Raises:
            ArgumentError: a value is missing, or has a wrong shape or dtype.
        """
        arrays = {name: _stacked([row[name] for row in batch], feature) for name, feature in model.inputs.items()}
        columns = columns_of(model(**arrays), len(batch), not_by_row(model))
        for place, row in enumerate(batch):
            scores = {name: column[place] for name, column in columns.items()}
            yield PredictionResult(row, scores, self._export)

    def get_metrics_namespace(self) -> str:
        """Returns the namespace of Beam metrics."""
        return "BeamScorer"


def beam_parts(plan: Plan, locations: Sequence[str], options: Sequence[str], staging: str | None) -> Iterator[Part]:
    """Yields the parts of all files, in order. A bundle that runs again writes the same parts under the same names.

    Args:
        plan: the plan that every worker receives.
        locations: the files, as locations that every worker can read.
        options: the pipeline options, as on the command line of Beam. Without a runner, the pipeline runs on this
            machine.
        staging: a directory or URL that every worker can write to. None: a directory of this machine.
    """
    named = any(option.startswith("--runner") for option in options)
    chosen = PipelineOptions([*options, *([] if named else [f"--runner={LOCAL_RUNNER}"])])
    here = tempfile.mkdtemp(prefix="estimator-parts-") if staging is None else None
    folder = f"{here or staging}/{uuid.uuid4().hex}"
    if not is_url(folder):
        Path(folder).mkdir(parents=True)
    try:
        with beam.Pipeline(options=chosen) as pipeline:
            files = pipeline | "Files" >> beam.Create(list(enumerate(locations))) | beam.Reshuffle()
            pieces = files | "Read" >> beam.FlatMap(_read, plan)
            parts = pieces | "Score" >> RunInference(_Pieces(plan))
            _ = parts | "Keep" >> beam.Map(_keep, folder)
        yield from _kept(folder, len(locations))
    finally:
        if not is_url(folder):
            shutil.rmtree(here or folder, ignore_errors=True)


class _Pieces(ModelHandler):  # pyright: ignore[reportUntypedBaseClass]
    """Scores pieces. Their batches are made where the files are read, so that every engine scores the same batches."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(max_batch_size=1)
        self._plan = plan

    def load_model(self) -> Any:
        return self._plan.opened()

    def run_inference(
        self, batch: Sequence[Piece], model: Any, inference_args: dict[str, Any] | None = None
    ) -> Iterable[Part]:
        return [part_of(piece, model, self._plan) for piece in batch]

    def get_num_bytes(self, batch: Sequence[Piece]) -> int:
        return sum(array.nbytes for piece in batch if piece.batch for array in piece.batch.arrays.values())


def _read(numbered: tuple[int, str], plan: Plan) -> Iterator[Piece]:
    file, location = numbered
    return pieces_of(file, location, plan.reading)


def _keep(part: Part, folder: str) -> None:
    """Writes a part atomically under its name. Beam uses pickle between its workers, so this adds no new risk."""
    target = f"{folder}/{_name(part.file, part.place)}"
    content = pickle.dumps(part)
    if is_url(target):
        with published_file(target) as path:
            path.write_bytes(content)
        return
    with draft_of(target) as draft:
        draft.write_bytes(content)


def _kept(folder: str, files: int) -> Iterator[Part]:
    """Yields the parts of all files. The caller detects missing parts."""
    for file in range(files):
        place = 0
        while True:
            path = _found(f"{folder}/{_name(file, place)}")
            if path is None:
                break
            part: Part = pickle.loads(path.read_bytes())  # noqa: S301 - written by the workers of this run
            path.unlink()
            yield part
            if part.scored is None:
                break
            place += 1


def _found(target: str) -> Path | None:
    if is_url(target):
        try:
            return copied_files(target)[0]
        except ObjectMissingError:
            return None
    path = Path(target)
    return path if path.is_file() else None


def _name(file: int, place: int) -> str:
    return f"{file:06}-{place:09}.part"


def _stacked(values: Sequence[Any], feature: ec.export.Feature) -> np.ndarray:
    if feature.dtype != "string":
        return np.stack([np.asarray(value) for value in values])
    if len(feature.shape) == 1:
        return objects(list(values))
    return np.stack([np.asarray(value, object) for value in values])
