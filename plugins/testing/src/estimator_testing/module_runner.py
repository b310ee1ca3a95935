"""Discovers, initialises and applies one module through its adapter, as the Estimator does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from estimator_core.model import ModuleAdapter, VariableSpec
from estimator_core.model import module as bring_in
from estimator_testing._core import Scope, Trainable, applying, declaring, initialize, seed_words, step_key


@dataclass(kw_only=True)
class ModuleRunner:
    """One module under the name "module", with its variables.

    Args:
        adapter: the adapter of its library.
        thing: the argument of `ec.module`.
        call: the function `call(module, inputs)` that returns the output. `module` is the result of `ec.module`.
        trainable: the argument of `ec.module`.
        seed: the seed of the initial values.

    Attributes:
        specs: the records of the declared variables, by path. `start` fills it, like the next two.
        variables, model_state: the values of trainable and of other variables, by path.
        traces: the number of times that the module was applied.
    """

    adapter: ModuleAdapter
    thing: Any
    call: Callable[[Any, Any], Any]
    trainable: Trainable = None
    seed: int = 0
    specs: dict[str, VariableSpec] = field(default_factory=dict[str, VariableSpec])
    variables: dict[str, Any] = field(default_factory=dict[str, Any])
    model_state: dict[str, Any] = field(default_factory=dict[str, Any])
    traces: int = 0

    def start(self, inputs: Any) -> ModuleRunner:
        """Finds the variables in an abstract trace, computes their first values, and returns the runner."""
        scopes: list[Scope] = []

        def trace(inputs: Any) -> Any:
            with declaring(self.specs, mode="train") as scope:
                output = self._output(inputs)
            scopes.append(scope)
            return output

        jax.eval_shape(trace, inputs)
        self.specs = dict(scopes[0].specs)
        values = initialize(self.specs, self.seed)
        self.variables = {path: value for path, value in values.items() if self.specs[path].trainable}
        self.model_state = {path: value for path, value in values.items() if path not in self.variables}
        return self

    def apply(
        self, variables: Mapping[str, Any], inputs: Any, *, mode: str = "eval", step: int = 0
    ) -> tuple[Any, dict[str, Any]]:
        """Returns the output, and the model state after it."""
        self.traces += 1
        words = np.array(seed_words(self.seed), np.uint32)
        with applying(
            variables, self.model_state, mode=mode, key=lambda: step_key(words, step), specs=self.specs
        ) as scope:
            output = self._output(inputs)
        return output, scope.new_model_state

    def _output(self, inputs: Any) -> Any:
        bound = bring_in(self.thing, name="module", trainable=self.trainable, adapters=lambda: iter([self.adapter]))
        return self.call(bound, inputs)
