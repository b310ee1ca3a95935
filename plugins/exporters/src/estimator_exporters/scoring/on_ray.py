"""Scoring on a Ray cluster: `map_batches` of Ray Data with actors that load the export."""

from __future__ import annotations

import contextlib
import os
import pickle
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

import estimator_core as ec
from estimator_core.errors import ArgumentError
from estimator_exporters.bundle.extras import lacking
from estimator_exporters.scoring.columns import columns_of, not_by_row
from estimator_exporters.scoring.pieces import Part, Piece, part_of, pieces_of
from estimator_exporters.scoring.plan import Plan, signature_of

try:
    import ray  # pyright: ignore[reportMissingImports]
    import ray.data  # pyright: ignore[reportMissingImports]
except ImportError as error:
    raise lacking("RayScorer", "ray", error) from error


class RayScorer:
    """Scores the batches of a dataset: `dataset.map_batches(RayScorer, fn_constructor_args=[EXPORT], concurrency=2)`.

    Each actor loads the export once. The result has the columns of the row and those that `estimator predict` writes.
    If an output has the name of an input, the output replaces the input.

    Args:
        export: the path or URL of an export that every node can read.
        signature: the name of the signature.

    Raises:
        ArgumentError: the signature does not exist.
        ExportError: the export cannot be read.
    """

    def __init__(self, export: str, signature: str = "serving_default") -> None:
        self._signature = signature_of(ec.export.load(export), signature)

    def __call__(self, batch: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Returns the columns of a batch and its scores.

        Raises:
            ArgumentError: a column is missing, has a wrong shape or dtype, or has the name of a score.
        """
        arrays = {name: column for name, column in batch.items() if name in self._signature.inputs}
        outputs = self._signature(**arrays)
        scores = columns_of(outputs, len(next(iter(batch.values()))), not_by_row(self._signature))
        if both := sorted((batch.keys() & scores.keys()) - arrays.keys()):  # their values would be replaced
            raise ArgumentError(f"The dataset has the columns {both}, and scores have these names. Rename the columns.")
        return {**batch, **scores}


def ray_parts(plan: Plan, locations: Sequence[str], workers: int) -> Iterator[Part]:
    """Yields the parts of all files, in order. Ray repeats the unfinished work of a lost worker.

    Args:
        plan: the plan that every worker receives.
        locations: the files, as locations that every worker can read.
        workers: the number of actors that score in parallel.
    """
    with _cluster():
        context = ray.data.DataContext.get_current().copy()
        context.execution_options.preserve_order = True
        context.enable_progress_bars = False
        with ray.data.DataContext.current(context):
            rows = ray.data.from_items(
                [{"file": file, "location": location} for file, location in enumerate(locations)],
                override_num_blocks=len(locations),
            )
            pieces = rows.flat_map(_Read(plan))
            parts = pieces.map_batches(
                _Score, fn_constructor_args=[plan], batch_size=1, concurrency=workers, zero_copy_batch=True
            )
            for row in parts.iter_rows():
                yield pickle.loads(row["part"])  # noqa: S301 - of our workers; Ray itself pickles


@contextlib.contextmanager
def _cluster() -> Generator[None]:
    """Uses the current cluster (RAY_ADDRESS, or that of the caller), or starts a local one for the block."""
    if ray.is_initialized():
        yield
        return
    # Without an address, Ray would use any cluster that another user has started on this machine.
    address = os.environ.get("RAY_ADDRESS", "local")
    ray.init(address=address, log_to_driver=False, include_dashboard=False)
    try:
        yield
    finally:
        ray.shutdown()


class _Read:
    """Reads a file and yields its pieces."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def __call__(self, row: Mapping[str, Any]) -> Iterator[dict[str, bytes]]:
        for piece in pieces_of(row["file"], row["location"], self._plan.reading):
            yield {"piece": pickle.dumps(piece)}


class _Score:
    """Scores pieces with an export that is loaded once."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._signature = plan.opened()

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, list[bytes]]:
        pieces: list[Piece] = [pickle.loads(one) for one in batch["piece"]]  # noqa: S301 - of our workers
        return {"part": [pickle.dumps(part_of(piece, self._signature, self._plan)) for piece in pieces]}
