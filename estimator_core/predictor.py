"""`Predictor`: a loaded model that is called like a function."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import jax

from estimator_core._backends import Devices
from estimator_core._backends.device_get import fetched, fetcher
from estimator_core._inputs import Batch, BatchSource, InputFn, InputOptions, open_input
from estimator_core._loop.programs import Programs
from estimator_core._step import TrainState
from estimator_core.errors import InputError
from estimator_core.modes import ModeKeys

if TYPE_CHECKING:
    from estimator_core._step.predict_step import PredictStep

__all__ = ["Predictor"]


class _Loaded(NamedTuple):
    """A state without slots, and programs by number of rows.

    Each program is for the first batch with this number of rows, and has a function that copies its results to the
    host.
    """

    state: TrainState
    programs: dict[int, tuple[Callable[..., Any], Callable[[Any], Any]]]


class Predictor:
    """`predictor(features)` returns the predictions of one batch as numpy arrays.

    `Estimator.predictor()` returns it. It keeps a snapshot of the state and the compiled program, so calls after the
    first are fast.
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
        self._loaded: _Loaded | None = None
        self._lock = threading.Lock()
        self._given = _Given()
        self._source: BatchSource | None = None

    def __call__(self, features: Any) -> Any:
        """Returns the predictions of one batch.

        Args:
            features: arrays with a leading batch axis, as input_fn returns them.
        """
        batch = self._batch(features)
        predictions = self._predictions(batch)
        for transform in self._step.prediction_transforms:
            predictions = transform.apply(predictions)
        return predictions

    @cached_property
    def _step(self) -> PredictStep:
        return self._programs.predict_step(self._devices)

    def _predictions(self, batch: Batch) -> Any:
        """Returns predictions on the host.

        A compiled program runs without the context of the devices, because entering the context takes as long as a
        small model.
        """
        loaded, watched = self._loaded, _is_watched()
        if loaded is not None and not watched and (known := loaded.programs.get(batch.size)) is not None:
            program, to_host = known
            try:
                found = program(loaded.state, batch.features, batch.weights)
            except (TypeError, ValueError):  # other shapes, refused before the program runs
                pass
            else:
                return to_host(found)
        with self._devices.placement.context():
            if loaded is None:
                loaded = self._loaded = _Loaded(self._make_state(batch)._replace(opt_state=()), {})
            given = loaded.state, batch.features, batch.weights
            found = self._step(*given)
            if not watched and batch.size not in loaded.programs:
                loaded.programs[batch.size] = self._step.compiled(*given), fetcher(found)
            return fetched(found)

    def _batch(self, features: Any) -> Batch:
        """Returns the checked features. The input stays open, since opening an input takes as long as a small model."""
        with self._lock:
            if self._source is not None:
                try:
                    return self._drawn(self._source, features)
                except InputError:
                    self._source = None  # features with another structure than before are valid here
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
        """Loads the newest state at the next call."""
        self._loaded = None


def _is_watched() -> bool:
    """Returns whether jax checks every value of a program. It does so only if jax itself calls the program."""
    config = cast(Any, jax.config)
    return config.jax_debug_nans or config.jax_debug_infs or config.jax_disable_jit


class _Given(Iterator[Any]):
    """An endless input that yields the newest features."""

    #: The arrays do not change during a call, and a call returns after they have been read.
    input_options = InputOptions(fresh_arrays=True)
    features: Any = None

    def __next__(self) -> Any:
        return self.features
