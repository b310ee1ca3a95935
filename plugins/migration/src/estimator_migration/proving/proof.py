"""`migrate prove`: the old and the new program on the same batches and weights."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from estimator_core.errors import ArgumentError
from estimator_migration.proving.compare import Quantity, compare
from estimator_migration.proving.program import load
from estimator_migration.proving.recording import read_recording
from estimator_migration.proving.this_side import run_here

TOLERANCE = 1e-5


@dataclass(frozen=True, kw_only=True)
class Proof:
    """The result of a comparison.

    Args:
        quantities: the quantities, in the order of the run.
        tolerance: the largest difference of programs that agree.
        steps: training steps that were made.
        made_by: the versions of the other side.
    """

    quantities: tuple[Quantity, ...]
    tolerance: float
    steps: int
    made_by: str

    @property
    def diverging(self) -> tuple[Quantity, ...]:
        """Quantities above the tolerance, in the order of the run: the first is where to look."""
        return tuple(each for each in self.quantities if not each.difference <= self.tolerance)

    def largest(self) -> tuple[Quantity, ...]:
        """The largest difference of each stage."""
        stages: dict[str, Quantity] = {}
        for each in self.quantities:
            known = stages.setdefault(each.stage, each)
            stages[each.stage] = each if each.difference > known.difference else known
        return tuple(stages.values())

    def to_json(self) -> dict[str, Any]:
        """The proof as JSON values; an infinite difference is null."""
        rows = [{**asdict(each), "difference": _number(each.difference)} for each in self.quantities]
        first = self.diverging[0] if self.diverging else None
        return {
            "agree": first is None,
            "first_diverging": None if first is None else {"stage": first.stage, "name": first.name},
            "made_by": self.made_by,
            "quantities": rows,
            "steps": self.steps,
            "tolerance": self.tolerance,
        }


def prove(
    recorded: str | os.PathLike[str],
    program: str,
    *,
    names: Mapping[str, str] | None = None,
    tolerance: float = TOLERANCE,
) -> Proof:
    """Runs the new program on the batches and weights of a recording, and compares.

    Args:
        recorded: a folder written by `estimator migrate prove --record FOLDER`.
        program: FILE[:FUNCTION] of the new program.
        names: different names of variables, metrics and predictions: names there by name here.
        tolerance: the tolerance of differences, as in `Quantity`.

    Raises:
        ArgumentError: there is no such recording or program, or a side computes another loss each time.
        CheckpointMismatchError: the weights of the old program do not fit the new one.
    """
    recording = read_recording(recorded)
    here = run_here(load(program), program, recording, names or {})
    sides = {"old": recording.computed.random, "new": here.random}
    random = [side for side, is_random in sides.items() if is_random]
    if random:
        raise ArgumentError(
            f"The training loss of the {' and of the '.join(random)} program differs from one time to the next, "
            "by the same weights and batch: dropout or noise. Set its rate to 0 in both functions."
        )
    return Proof(
        quantities=tuple(compare(here, recording.computed, names or {})),
        tolerance=tolerance,
        steps=len(recording.train_batches),
        made_by=recording.made_by,
    )


def _number(value: float) -> float | None:
    return value if np.isfinite(value) else None
