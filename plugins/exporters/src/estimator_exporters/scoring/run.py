"""One batch scoring, from the input files to the output file."""

from __future__ import annotations

import glob
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import estimator_core as ec
from estimator_core.errors import ArgumentError
from estimator_core.storage import is_url, published_file
from estimator_exporters.scoring.batch import batch_size_for, fixed_rows
from estimator_exporters.scoring.engines import Engine, local
from estimator_exporters.scoring.incomplete_rows import Treatment
from estimator_exporters.scoring.io_threads import behind
from estimator_exporters.scoring.plan import Plan, signature_of
from estimator_exporters.scoring.read import Reading
from estimator_exporters.scoring.write import check_output, writing

#: The largest number of refused rows that are shown one by one. Readers log as many of their own.
_SHOWN = 5


@dataclass(frozen=True, kw_only=True)
class Job:
    """The settings of one batch scoring.

    Attributes:
        export: the path or URL of an export or of a directory of exports, of which the newest is used.
        inputs: paths, URLs, or glob patterns of paths or URLs.
        output: the path or URL of the file to write.
        signature: the name of the signature.
        batch_size: the number of rows per batch. None: the size of a row determines it.
        keep: the input columns to copy. Inputs of the signature keep their type, and other columns become text.
        on_error: "raise", "skip", or None for the behaviour of training.
        field_delim: the character between columns of CSV files. None: the character of training.
        engine: the engine that scores.
    """

    export: str
    inputs: tuple[str, ...]
    output: str | os.PathLike[str]
    signature: str = "serving_default"
    batch_size: int | None = None
    keep: tuple[str, ...] = ()
    on_error: str | None = None
    field_delim: str | None = None
    engine: Engine = local


@dataclass(frozen=True, kw_only=True)
class Done:
    """The result of a job.

    Attributes:
        rows: the number of scored rows.
        left_out: the number of rows that the signature refused.
        shown: the error messages of the first refused rows.
    """

    rows: int
    left_out: int
    shown: tuple[str, ...]


def score_files(job: Job) -> Done:
    """Scores all rows, in the order of the files.

    Raises:
        ArgumentError, InputError: files, columns or rows cannot be used. The message names them. No output is written.
        ExportError: the export cannot be read.
    """
    _check_apart(job)
    with published_file(job.output) as output:
        return _score(job, output)


def _check_apart(job: Job) -> None:
    """Refuses an output that is also an input, because the scores would replace its rows."""
    output = os.fspath(job.output)
    for place in job.inputs:
        found = [place] if is_url(place) else glob.glob(place, recursive=True)
        if output in found or any(_same_file(one, output) for one in found):
            raise ArgumentError(f"--output {output} is also read as --input. Choose another file.")


def _same_file(one: str, other: str) -> bool:
    return os.path.exists(one) and os.path.exists(other) and os.path.samefile(one, other)


def _score(job: Job, path: Path) -> Done:
    check_output(path)
    loaded: Any = ec.export.load(job.export)
    signature = signature_of(loaded, job.signature)
    treatment = Treatment.of(loaded.directory, loaded)
    imaginary = sorted(name for name, each in signature.outputs.items() if each.dtype.startswith("complex"))
    if imaginary and path.suffix != ".npz":
        raise ArgumentError(
            f"A {path.suffix} file cannot hold complex numbers, but {imaginary} are complex. Write .npz instead."
        )
    fixed = fixed_rows(signature.inputs)
    if fixed is not None and job.batch_size not in (None, fixed):
        raise ArgumentError(f"--batch-size {job.batch_size}: the export takes batches of {fixed} rows. Leave it out.")
    reading = Reading(
        inputs=dict(signature.inputs),
        batch_size=fixed or job.batch_size or batch_size_for(signature.inputs),
        defaults=treatment.column_defaults,
        skip_bad_rows=(job.on_error or treatment.on_error) == "skip",
        keep=job.keep,
        na_values=treatment.na_values,
        field_delim=treatment.field_delim if job.field_delim is None else job.field_delim,
    )
    # Every process loads the export that is the newest one at this moment.
    export = job.export if is_url(job.export) else str(loaded.directory.absolute())
    plan = Plan(export=export, signature=job.signature, reading=reading)
    rows, refused, shown = 0, 0, list[str]()
    with writing(path) as output, behind(output.add) as add:
        for piece in job.engine(plan, signature, job.inputs):
            if piece.rows:
                add(piece.columns)
            rows, refused = rows + piece.rows, refused + len(piece.refused)
            shown += piece.refused[: max(_SHOWN - len(shown), 0)]
        if not rows:
            files = ", ".join(job.inputs)
            raise ArgumentError(f"{files}: no row can be scored: the input has no rows, or only bad rows.")
    return Done(rows=rows, left_out=refused, shown=tuple(shown))
