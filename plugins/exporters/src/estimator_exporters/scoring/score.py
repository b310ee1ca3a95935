"""Calls a signature on batches, with programs of few sizes. The error about a refused row names the row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from estimator_core.errors import ArgumentError, EstimatorError
from estimator_exporters.scoring.batch import Batch, fixed_rows
from estimator_exporters.scoring.columns import columns_of, not_by_row


@dataclass(frozen=True, kw_only=True)
class Scored:
    """Rows with their scores.

    Attributes:
        columns: the kept columns and the columns of the outputs.
        rows: the number of rows.
        refused: the error messages of refused rows, each with the place of the row.
    """

    columns: Mapping[str, np.ndarray]
    rows: int
    refused: tuple[str, ...] = ()


def score(
    signature: Callable[..., Mapping[str, np.ndarray]],
    batches: Iterable[Batch],
    *,
    batch_size: int,
    skip_bad_rows: bool,
) -> Iterator[Scored]:
    """Yields the columns of each batch.

    Args:
        signature: a function from arrays by name to arrays by name.
        batches: batches of at most `batch_size` rows.
        batch_size: the size to which shorter batches are padded with their last row, or a smaller power of two. This
            keeps the number of programs small, and the batch alone decides which program scores a row.
        skip_bad_rows: whether rows that the signature refuses are left out.

    Raises:
        ArgumentError: the signature refuses a row. The message names file and row. Also raised if a column to keep has
            the name of a score, or if rows do not fill the batch of an export with a fixed batch size.
    """
    fixed = fixed_rows(getattr(signature, "inputs", {}))
    for batch in batches:
        if fixed is not None and batch.rows != fixed:  # padding might change the scores of the other rows
            raise ArgumentError(
                f"{batch.path}, row {batch.first}: the export takes batches of {fixed} rows, but the last one has "
                f"{batch.rows}. Give each file a multiple of {fixed} rows, or export with None as the batch size."
            )
        size = fixed or min(batch_size, 1 << (batch.rows - 1).bit_length())
        try:
            outputs = _called(signature, batch, size)
        except EstimatorError as error:
            if fixed is not None:  # it does not accept a single row
                raise ArgumentError(f"{batch.path}, from row {batch.first}: {error}") from error
            if not skip_bad_rows:
                row, reason = _first_refused(signature, batch, error)
                raise ArgumentError(f"{batch.path}, row {batch.first + row}: {reason}") from error
            yield from _one_by_one(signature, batch)
        else:
            yield Scored(columns=_columns(signature, batch, outputs), rows=batch.rows)


def _called(signature: Any, batch: Batch, size: int) -> dict[str, np.ndarray]:
    missing = size - batch.rows
    arrays = batch.arrays if not missing else {name: _padded(array, missing) for name, array in batch.arrays.items()}
    outputs = signature(**arrays)
    if not missing:
        return dict(outputs)
    return {
        name: array[: batch.rows] if np.ndim(array) and len(array) == size else array for name, array in outputs.items()
    }


def _padded(array: np.ndarray, missing: int) -> np.ndarray:
    return np.concatenate([array, np.repeat(array[-1:], missing, axis=0)])


def _columns(signature: object, batch: Batch, outputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    scores = columns_of(outputs, batch.rows, not_by_row(signature))
    if not scores:
        shapes = ", ".join(f"{name} {list(array.shape)}" for name, array in outputs.items())
        raise ArgumentError(
            f"The signature returns no value for each row, but {shapes} for {batch.rows} rows. "
            "Choose another --signature."
        )
    for name in batch.kept:
        if name in scores:  # its values would be replaced
            raise ArgumentError(
                f"--keep {name}: a score has that name too ({', '.join(scores)}). Rename the column of the input."
            )
    return {**batch.kept, **scores}


def _first_refused(signature: Any, batch: Batch, error: EstimatorError) -> tuple[int, str]:
    """Returns the first row that is refused alone, and the reason. Returns row 0 if only the whole batch is refused."""
    for row in range(batch.rows):
        try:
            signature(**batch.cut(row, row + 1).arrays)
        except EstimatorError as own:
            return row, _of_one_row(own)
    return 0, str(error)


def _of_one_row(error: EstimatorError) -> str:
    """Returns the error message of a batch of one row, without the row number in that batch."""
    return str(error).replace(" in row 0:", ":", 1)


def _one_by_one(signature: Any, batch: Batch) -> Iterator[Scored]:
    """Yields the scores of a batch row by row. Some of its rows are refused."""
    for row in range(batch.rows):
        one = batch.cut(row, row + 1)
        try:
            outputs = _called(signature, one, 1)
        except EstimatorError as error:
            yield Scored(columns={}, rows=0, refused=(f"{one.path}, row {one.first}: {_of_one_row(error)}",))
        else:
            yield Scored(columns=_columns(signature, one, outputs), rows=1)
