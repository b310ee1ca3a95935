"""`Predictor`: a loaded model as a function."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

from estimator_core._backends import Devices
from estimator_core._backends.fetched import fetched
from estimator_core._inputs import Batch, BatchSource, InputFn, InputOptions, open_input
from estimator_core._loop.programs import Programs
from estimator_core._step import TrainState
from estimator_core.errors import InputError
from estimator_core.modes import ModeKeys

__all__ = ["Predictor"]


class Predictor:
    """`predictor(features)` returns the predictions of one batch as numpy arrays.

    Made by `Estimator.predictor()`; keeps a snapshot of the state and the compiled program, so calls after the first
    are warm.
    """

    def __init__(
        self,
        devices: Devices,
        programs: Programs,
        state: Callable[[Batch], TrainState],
        transformed: Callable[[InputFn], InputFn],
    ) -> None:
        self._devices, self._programs = devices, programs
        self._make_state = state
        self._transformed = transformed
        self._state: TrainState | None = None
        self._lock = threading.Lock()
        self._given = _Given()
        self._source: BatchSource | None = None

    def __call__(self, features: Any) -> Any:
        """Predictions of one batch.

        Args:
            features: arrays with a leading batch axis, as input_fn returns them.
        """
        batch = self._batch(features)
        step = self._programs.predict_step(self._devices)
        with self._devices.placement.context():
            if self._state is None:
                self._state = self._make_state(batch)
            predictions = fetched(step(self._state, batch.features, batch.weights))
        for transform in step.prediction_transforms:
            predictions = transform.apply(predictions)
        return predictions

    def _batch(self, features: Any) -> Batch:
        """The features, checked. The input stays open: opening one takes as long as a small model."""
        with self._lock:
            if self._source is not None:
                try:
                    return self._drawn(self._source, features)
                except InputError:
                    self._source = None  # features with another structure than before are not an error here
            source = open_input(self._transformed(lambda: self._given), mode=ModeKeys.PREDICT)
            batch = self._drawn(source, features)
            self._source = source
            return batch

    def _drawn(self, source: BatchSource, features: Any) -> Batch:
        self._given.features = features
        try:
            return next(source)
        finally:
            self._given.features = None

    def refresh(self) -> None:
        """Takes the newest state at the next call."""
        self._state = None


class _Given(Iterator[Any]):
    """An input without end that yields what it was given last."""

    #: Nobody writes into the arrays before a call returns, and it returns when they have been read.
    input_options = InputOptions(fresh_arrays=True)
    features: Any = None

    def __next__(self) -> Any:
        return self.features
