"""`Predictor`: a loaded model as a function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax

from estimator_core.inputs import open_input, with_transforms
from estimator_core.loop.engine import Engine
from estimator_core.modes import ModeKeys


class Predictor:
    """`predictor(features)` gives the predictions of one batch as numpy arrays.

    Made by `Estimator.predictor()`; keeps a snapshot of the state and the compiled program, so calls after the first
    are warm.
    """

    def __init__(self, engine: Engine, state: Callable[[Any], Any], host_transforms: Sequence[Any]) -> None:
        self._engine = engine
        self._make_state = state
        self._transforms = host_transforms
        self._state: Any = None

    def __call__(self, features: Any) -> Any:
        """Predictions of one batch.

        Args:
            features: arrays with a leading batch axis, as input_fn gives them.
        """
        batch = next(open_input(self._input_fn(features), mode=ModeKeys.PREDICT))
        step = self._engine.predict_step
        with self._engine.placement.context():
            if self._state is None:
                self._state = self._make_state(batch)
            predictions = jax.device_get(step(self._state, batch.features, batch.weights))
        for transform in step.prediction_transforms:
            predictions = transform.apply(predictions)
        return predictions

    def _input_fn(self, features: Any) -> Callable[..., Any]:
        return (
            with_transforms(lambda: [features], features=self._transforms) if self._transforms else lambda: [features]
        )

    def refresh(self) -> None:
        """Takes the newest state at the next call."""
        self._state = None
