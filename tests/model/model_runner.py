"""The smallest form of a loop for a model function: discover, initialise, step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from estimator_core._model.initialize import initialize, seed_words, step_key
from estimator_core._model.scope import applying, declaring


class Runner:
    """Runs `model(*inputs)` as the Estimator would.

    Attributes:
        specs: the specs of all known variables.
        variables, model_state: the state. `step` advances the model state.
        summaries, tensors: the named outputs of the newest step.
        traces: how often the model was called.
    """

    def __init__(self, model: Callable[..., Any], seed: int = 0) -> None:
        self.model = model
        self.seed = seed
        self.specs: dict[str, Any] = {}
        self.variables: dict[str, Any] = {}
        self.model_state: dict[str, Any] = {}
        self.summaries: dict[str, Any] = {}
        self.tensors: dict[str, Any] = {}
        self.texts: dict[str, str] = {}
        self.scope: Any = None
        self.traces = 0
        self._steps: dict[str, Any] = {}

    def discover(self, *inputs: Any, mode: str = "train", **options: Any) -> Any:
        """Returns the abstract output, and adds the specs to the known ones."""

        def trace(*inputs: Any) -> Any:
            self.traces += 1
            with declaring(self.specs, mode=mode, **options) as scope:
                output = self.model(*inputs)
            self.scope = scope
            return output

        output = jax.eval_shape(trace, *inputs)
        self.specs = dict(self.scope.specs)
        return output

    def initialize(self) -> Runner:
        values = initialize(self.specs, self.seed)
        self.variables = {path: value for path, value in values.items() if self.specs[path].trainable}
        self.model_state = {path: value for path, value in values.items() if not self.specs[path].trainable}
        return self

    def start(self, *inputs: Any, **options: Any) -> Runner:
        self.discover(*inputs, **options)
        return self.initialize()

    def step(self, *inputs: Any, mode: str = "train", step: int = 0) -> Any:
        """Runs one compiled call of the model."""
        if mode not in self._steps:
            self._steps[mode] = jax.jit(lambda *arguments: self._apply(mode, *arguments))
        output, state, summaries, self.tensors = self._steps[mode](self.variables, self.model_state, step, *inputs)
        self.summaries = summaries
        if mode == "train":
            self.model_state = state
        return output

    def _apply(self, mode: str, variables: Any, model_state: Any, step: Any, *inputs: Any) -> Any:
        self.traces += 1
        words = np.array(seed_words(self.seed), np.uint32)
        with applying(variables, model_state, mode=mode, key=lambda: step_key(words, step), specs=self.specs) as scope:
            output = self.model(*inputs)
        self.texts = {name: one.value for name, one in scope.summaries.items() if one.kind == "text"}
        summaries = {name: one.value for name, one in scope.summaries.items() if one.kind != "text"}
        return output, scope.new_model_state, summaries, {name: one.value for name, one in scope.tensors.items()}
