"""Runs the program of estimator-core on the batches and weights of a recording."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import estimator_core as ec
from estimator_core.hooks import Run, StepOutputs
from estimator_core.inputs import InputOptions
from estimator_migration.proving.computed import Arrays, Computed, Evaluated, joined
from estimator_migration.proving.guided_steps import Led, led_along
from estimator_migration.proving.program import estimator_of
from estimator_migration.proving.recording import Recording
from estimator_migration.proving.starting import StartFrom

#: The relative tolerance between two compilations of one loss.
_SAME_LOSS = 1e-5


def run_here(
    function: Callable[[str], Mapping[str, Any]], named: str, recording: Recording, names: Mapping[str, str]
) -> tuple[Computed, Led]:
    """Runs the program in the same way as the recorded one, freely, and then along the recorded one.

    Args:
        function: the function that returns the parts for a model_dir.
        named: the name of the function, for messages.
        recording: the batches and weights.
        names: the names that differ: the name there, by name here.

    Raises:
        CheckpointMismatchError: variables are missing there, or have another shape.
    """
    train, evaluation = partial(_Recorded, recording.train_batches), partial(_Recorded, recording.eval_batches)
    with tempfile.TemporaryDirectory(prefix="estimator-prove-") as scratch:
        estimator = estimator_of(function(str(Path(scratch, "run"))), named)
        there = recording.computed.weights[0]
        found = led_along(
            estimator,
            train,
            recording.computed,
            names,
            Path(scratch, "led"),
            lambda estimator: _evaluated(estimator, evaluation),
        )
        follow = _Follow(there, names, evaluation)
        estimator.train(train, hooks=[follow], steps=len(recording.train_batches))
        assert follow.start is not None, "a recording has batches"
        free = Computed(
            losses=follow.losses,
            gradients=found.gradients,
            weights=[follow.weights, *follow.after],
            start=follow.start,
            end=_evaluated(estimator, evaluation),
            trainable=frozenset(follow.trainable),
            random=not np.isclose(found.losses[0], follow.losses[0], rtol=_SAME_LOSS, atol=_SAME_LOSS),
        )
        return free, found


class _Follow(StartFrom):
    """Evaluates before the first step, and records all variables after each step."""

    def __init__(self, there: Arrays, names: Mapping[str, str], evaluation: Callable[..., Any]) -> None:
        super().__init__(there, names)
        self._evaluation = evaluation
        self.after: list[Arrays] = []
        self.start: Evaluated | None = None
        self.trainable: tuple[str, ...] = ()

    def before_step(self, run: Run, step: int) -> None:
        if self.start is None:
            self.trainable = tuple(run.state.variables)
            self.start = _evaluated(run.estimator, self._evaluation)

    def after_step(self, run: Run, step: int, out: StepOutputs) -> None:
        super().after_step(run, step, out)
        state = {**run.state.variables, **run.state.model_state}
        self.after.append({path: np.array(state[path]) for path in self.weights})


def _evaluated(estimator: ec.Estimator, input_fn: Callable[..., Any]) -> Evaluated:
    metrics = estimator.evaluate(input_fn)
    predictions = list(estimator.predict(input_fn, yield_single_examples=False))
    return Evaluated(metrics={key: np.asarray(metrics[key]) for key in metrics}, predictions=joined(predictions))


class _Recorded:
    """Yields the recorded batches. The width of sparse features varies by batch, as with features from files."""

    input_options = InputOptions(varying_shapes=True)

    def __init__(self, batches: Sequence[Mapping[str, Any]]) -> None:
        self._left = iter(batches)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        batch = next(self._left)
        return (batch["features"], batch["labels"]) if "labels" in batch else batch["features"]
