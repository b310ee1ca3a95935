"""Where a scoring runs: in this process, on a cluster of Ray, or by a runner of Beam; the scores are the same."""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Generator, Iterator, Sequence
from typing import Protocol

from estimator_core.errors import ArgumentError
from estimator_core.export import LoadedSignature
from estimator_exporters.scoring.batch import Batch
from estimator_exporters.scoring.locations import locations_of
from estimator_exporters.scoring.pieces import in_order
from estimator_exporters.scoring.plan import Plan
from estimator_exporters.scoring.read import find, read
from estimator_exporters.scoring.score import Scored, score
from estimator_exporters.scoring.side_by_side import ahead


class Engine(Protocol):
    """Yields the scores of all rows, in the order of the files, each row once."""

    def __call__(self, plan: Plan, signature: LoadedSignature, patterns: Sequence[str], /) -> Iterator[Scored]:
        """Scores files.

        Args:
            plan: what every process is told.
            signature: of the plan, loaded in this process.
            patterns: of the files.
        """
        ...


def local(plan: Plan, signature: LoadedSignature, patterns: Sequence[str]) -> Iterator[Scored]:
    """Scores in this process, while a thread reads the next batches."""
    reading, paths = plan.reading, find(patterns)

    def batches() -> Generator[Batch]:
        for path in paths:
            yield from read(path, reading)

    with contextlib.closing(ahead(batches())) as found:
        yield from score(signature, found, batch_size=reading.batch_size, skip_bad_rows=reading.skip_bad_rows)


def ray_engine(*, workers: int = 1) -> Engine:
    """Scores by actors of Ray: on the cluster of RAY_ADDRESS or of the caller, otherwise on one of this machine.

    Args:
        workers: actors that score at a time.

    Raises:
        ArgumentError: Ray is not installed.
    """
    _need("ray", extra="ray")

    def score_by_ray(plan: Plan, signature: LoadedSignature, patterns: Sequence[str]) -> Iterator[Scored]:
        from estimator_exporters.scoring.on_ray import ray_parts

        locations = locations_of(patterns)
        return in_order(ray_parts(plan, locations, workers), locations)

    return score_by_ray


def beam_engine(*, options: Sequence[str] = (), staging: str | None = None) -> Engine:
    """Scores by a pipeline of Beam, in this process where the options name no runner.

    Args:
        options: of the pipeline, as on Beam's command lines: `--runner=FlinkRunner`.
        staging: a directory or URL that every worker can write; None: a directory of this machine.

    Raises:
        ArgumentError: Beam is not installed.
    """
    _need("apache_beam", extra="beam")

    def score_by_beam(plan: Plan, signature: LoadedSignature, patterns: Sequence[str]) -> Iterator[Scored]:
        from estimator_exporters.scoring.on_beam import beam_parts

        locations = locations_of(patterns)
        return in_order(beam_parts(plan, locations, options, staging), locations)

    return score_by_beam


def _need(module: str, *, extra: str) -> None:
    if importlib.util.find_spec(module) is None:
        raise ArgumentError(
            f"--on {extra} needs {module}, which is not installed. Install it: pip install "
            f"'estimator-exporters[predict,{extra}]'"
        )
