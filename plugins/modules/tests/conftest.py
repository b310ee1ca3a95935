"""The runner of model functions from the core's tests, and a batch."""

from __future__ import annotations

import os

os.environ.setdefault("KERAS_BACKEND", "jax")

import numpy as np
import pytest

from tests.model.model_runner import Runner


@pytest.fixture
def runner() -> type[Runner]:
    return Runner


@pytest.fixture
def batch() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32)
