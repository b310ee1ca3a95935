"""One prediction step, and the pure function from which exports are made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import jax

from estimator_core._backends import Placement
from estimator_core._metrics.example_weights import applying_example_weights
from estimator_core._model.initialize import step_key
from estimator_core._model.scope import applying
from estimator_core._model.variables import VariableSpec
from estimator_core._step.discovery import reject_tracers_in_hooks
from estimator_core._step.model_fn import BoundModelFn
from estimator_core._step.state import SEED_LOW, STEP, TrainState
from estimator_core._types import Mask, PyTree
from estimator_core.hooks import Hook
from estimator_core.modes import ModeKeys
from estimator_core.specs import EstimatorSpec


class PredictStep:
    """The compiled prediction step of one model, for all its batch shapes.

    `step(state, features, weights)` returns the predictions: an array or a dict of arrays.
    """

    def __init__(
        self,
        model_fn: BoundModelFn,
        specs: Callable[[], Mapping[str, VariableSpec]],
        *,
        traces: Counter[str],
        placement: Placement,
    ) -> None:
        self._model_fn = model_fn
        self._specs = specs
        self._traces = traces
        whole = placement.replicated if placement.spans_processes else None
        self._run: Any = jax.jit(self._predict, out_shardings=whole)
        self._run_several: Callable[..., PyTree] = jax.jit(self._predict_several)
        self.hooks: tuple[Hook, ...] = ()
        self.prediction_transforms: tuple[Any, ...] = ()

    def __call__(self, state: TrainState, features: PyTree, weights: Mask = None) -> PyTree:
        """Returns the predictions of one batch."""
        return self._run(state._replace(opt_state=()), features, weights)

    def several(self, state: TrainState, features: PyTree, weights: Mask = None) -> PyTree:
        """Returns the predictions of batches that are stacked along a leading axis, each computed separately.

        For this process only.
        """
        return self._run_several(state._replace(opt_state=()), features, weights)

    def compiled(self, state: TrainState, features: PyTree, weights: Mask = None) -> Callable[..., PyTree]:
        """Returns the program for a batch of these shapes and a state without slots.

        It runs without a context. It refuses other shapes with a TypeError or ValueError before it runs.
        """
        return self._run.lower(state, features, weights).compile()

    def has_effects(self, state: TrainState, features: PyTree, weights: Mask = None) -> bool:
        """Returns whether predicting a batch calls back to the host, as `jax.debug.print` does."""
        return bool(self._run.trace(state._replace(opt_state=()), features, weights).jaxpr.effects)

    def _predict_several(self, state: TrainState, features: PyTree, weights: Mask) -> PyTree:
        return jax.lax.map(lambda batch: self._predict(state, *batch), (features, weights))

    def _predict(self, state: TrainState, features: PyTree, weights: Mask) -> PyTree:
        self._traces[ModeKeys.PREDICT] += 1
        with applying_example_weights(weights):
            spec = apply_model(self._model_fn, self._specs(), state, features, None, ModeKeys.PREDICT)
        reject_tracers_in_hooks(spec)
        if not self.hooks:
            self.hooks = tuple(spec.prediction_hooks)
        self.prediction_transforms = tuple(spec.prediction_transforms)
        return spec.predictions


def apply_model(
    model_fn: BoundModelFn,
    specs: Mapping[str, VariableSpec],
    state: TrainState,
    features: PyTree,
    labels: PyTree,
    mode: str,
) -> EstimatorSpec:
    """Returns the EstimatorSpec of model_fn on the variables of a state. The call may be traced."""
    with applying(
        state.variables,
        state.model_state,
        mode=mode,
        key=lambda: step_key(state.clock[SEED_LOW:], state.clock[STEP]),
        specs=specs,
    ):
        return model_fn.spec(features, labels, mode)
