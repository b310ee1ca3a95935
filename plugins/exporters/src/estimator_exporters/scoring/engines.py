"""The engines of scoring: this process, a Ray cluster, or a Beam runner. The scores are the same."""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Generator, Iterator, Sequence
from typing import Protocol

from estimator_core.errors import ArgumentError
from estimator_core.export import LoadedSignature
from estimator_exporters.scoring.batch import Batch
from estimator_exporters.scoring.io_threads import ahead
from estimator_exporters.scoring.locations import locations_of
from estimator_exporters.scoring.pieces import in_order
from estimator_exporters.scoring.plan import Plan
from estimator_exporters.scoring.read import find, read
from estimator_exporters.scoring.score import Scored, score


class Engine(Protocol):
    """Yields the scores of all rows once, in the order of the files."""

    def __call__(self, plan: Plan, signature: LoadedSignature, patterns: Sequence[str], /) -> Iterator[Scored]:
        """Scores files.

        Args:
            plan: the plan that every process receives.
            signature: the signature of the plan, loaded in this process.
            patterns: paths, URLs or glob patterns of the files.
        """
        ...


def local(plan: Plan, signature: LoadedSignature, patterns: Sequence[str]) -> Iterator[Scored]:
    """Scores in this process. A thread reads the next batches in the meantime."""
    reading, paths = plan.reading, find(patterns)

    def batches() -> Generator[Batch]:
        for path in paths:
            yield from read(path, reading)

    with contextlib.closing(ahead(batches())) as found:
        yield from score(signature, found, batch_size=reading.batch_size, skip_bad_rows=reading.skip_bad_rows)


def ray_engine(*, workers: int = 1) -> Engine:
    """Scores with Ray actors, on the cluster of RAY_ADDRESS or of the caller, or else on a local one.

    Args:
        workers: the number of actors that score in parallel.

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
    """Scores with a Beam pipeline. It runs in this process if the options do not name a runner.

    Args:
        options: pipeline options, as on the command line of Beam: `--runner=FlinkRunner`.
        staging: a directory or URL that every worker can write to. None: a directory of this machine.

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
