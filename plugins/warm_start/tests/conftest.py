"""Defines the models that the tests of initial values share, which are discovered as by the Estimator."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np
import pytest

from estimator_core._model.scope import applying, declaring
from estimator_core.model import InitialValues, VariableSpec


class Discovered:
    """A model after its abstract trace.

    Attributes:
        specs: its variables, by path.
        requests: the initial values that it requested, in order.
    """

    def __init__(self, model: Callable[[Any], Any], batch: np.ndarray, *, fresh: bool) -> None:
        self.model, self.batch = model, batch
        self.specs: Mapping[str, VariableSpec] = {}
        self.requests: tuple[InitialValues, ...] = ()
        jax.eval_shape(functools.partial(self._declare, fresh), batch)

    def step(self, values: Mapping[str, np.ndarray]) -> np.ndarray:
        """Returns the result of the compiled model for the batch."""
        return np.asarray(jax.jit(self._apply)(dict(values), self.batch))

    def _declare(self, fresh: bool, batch: Any) -> Any:
        with declaring({}, mode="train", fresh=fresh) as scope:
            output = self.model(batch)
        self.specs, self.requests = dict(scope.specs), tuple(scope.requests)
        return output

    def _apply(self, values: Any, batch: Any) -> Any:
        with applying(values, {}, mode="train", key=None, specs=self.specs):
            return self.model(batch)


@pytest.fixture
def batch() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32)


@pytest.fixture
def discover(batch: np.ndarray) -> Callable[..., Discovered]:
    """`discover(model, fresh=True)` traces the model with the batch."""
    return lambda model, fresh=True: Discovered(model, batch, fresh=fresh)
