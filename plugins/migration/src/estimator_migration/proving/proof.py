"""`migrate prove`: the old and the new program on the same batches and weights."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from estimator_core.errors import ArgumentError
from estimator_migration.proving.compare import Quantity, compare, compare_led
from estimator_migration.proving.program import load
from estimator_migration.proving.recording import read_recording
from estimator_migration.proving.this_side import run_here

TOLERANCE = 1e-5


@dataclass(frozen=True, kw_only=True)
class Proof:
    """The result of a comparison.

    Args:
        quantities: the quantities of a free run from the same first weights, in the order of the run.
        led: the quantities of steps that each begin with the weights of the other side. Empty if only one step is
            recorded.
        tolerance: the largest difference between programs that agree.
        steps: the number of training steps.
        made_by: the versions of the other side.
    """

    quantities: tuple[Quantity, ...]
    tolerance: float
    steps: int
    made_by: str
    led: tuple[Quantity, ...] = ()

    @property
    def diverging(self) -> tuple[Quantity, ...]:
        """The quantities above the tolerance, in the order of the run.

        The first one shows the cause. Empty if only rounding has grown.
        """
        return () if self.drift is not None else self._apart

    @property
    def drift(self) -> Quantity | None:
        """The largest difference of a free run, if it is accumulated rounding, else None.

        It is accumulated rounding if three things agree: each step from the same weights, each update from the same
        gradients, and the results with the same weights.
        """
        within = bool(self.led) and all(each.difference <= self.tolerance for each in self.led)
        if not (self._apart and within and all(each.follows_steps for each in self._apart)):
            return None
        return max(self._apart, key=lambda each: each.difference)

    @property
    def _apart(self) -> tuple[Quantity, ...]:
        return tuple(each for each in self.quantities if not each.difference <= self.tolerance)

    def largest(self) -> tuple[Quantity, ...]:
        """Returns the quantity with the largest difference of each stage."""
        stages: dict[str, Quantity] = {}
        for each in self.quantities:
            known = stages.setdefault(each.stage, each)
            stages[each.stage] = each if each.difference > known.difference else known
        return tuple(stages.values())

    def to_json(self) -> dict[str, Any]:
        """Returns the proof as JSON values. An infinite difference is null."""
        first = self.diverging[0] if self.diverging else None
        return {
            "agree": first is None,
            "drift": None if self.drift is None else _row(self.drift),
            "first_diverging": None if first is None else {"stage": first.stage, "name": first.name},
            "made_by": self.made_by,
            "led": [_row(each) for each in self.led],
            "quantities": [_row(each) for each in self.quantities],
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
        names: the names of variables, metrics and predictions that differ: the name there, by name here.
        tolerance: the tolerance of differences, as in `Quantity`.

    Raises:
        ArgumentError: the recording or the program does not exist, a side computes a different loss each time, or
            `names` has names that the new program does not have.
        CheckpointMismatchError: the weights of the old program do not fit the new one.
    """
    recording = read_recording(recorded)
    here, led = run_here(load(program), program, recording, names or {})
    sides = {"old": recording.computed.random, "new": here.random}
    random = [side for side, is_random in sides.items() if is_random]
    if random:
        raise ArgumentError(
            f"The training loss of the {' and of the '.join(random)} program differs between two computations "
            "with the same weights and batch: it uses dropout or noise. Set its rate to 0 in both functions."
        )
    known = {*here.weights[0], *here.start.metrics, *here.start.predictions}
    if unknown := sorted((names or {}).keys() - known):
        raise ArgumentError(
            f"Names are given for variables, metrics or predictions that the new program does not have: {unknown}. "
            f"It has {sorted(known)}."
        )
    return Proof(
        quantities=tuple(compare(here, recording.computed, names or {})),
        led=tuple(compare_led(led, recording.computed, names or {})),
        tolerance=tolerance,
        steps=len(recording.train_batches),
        made_by=recording.made_by,
    )


def _row(quantity: Quantity) -> dict[str, Any]:
    return {**asdict(quantity), "difference": _number(quantity.difference)}


def _number(value: float) -> float | None:
    return value if np.isfinite(value) else None
