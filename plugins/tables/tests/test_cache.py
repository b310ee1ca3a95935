"""A cache on the device for a table in the memory of the host: the numbers of the table alone, for everybody."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import cached_program
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from cached_program import COLUMNS, ROWS, batches, estimator_in, growing_in, input_fn

import estimator_core as ec
from estimator_core.checkpoint import read_checkpoint
from estimator_tables import AllToAll
from estimator_tables.cache import WAYS, CachedRows, CachedTable

pytestmark = pytest.mark.skipif(jax.__version_info__ < (0, 10, 2), reason="needs jax 0.10.2")
STEPS = 12


def saved(model_dir: Path) -> dict[str, bytes]:
    """Variables and slots of the newest checkpoint."""
    found = read_checkpoint(str(ec.latest_checkpoint(str(model_dir))))
    return {name: np.asarray(value).tobytes() for name, value in {**found.variables, **found.opt_state}.items()}


class Seen(ec.Hook):
    """The table and its slots as hooks see them, every third step."""

    def __init__(self) -> None:
        self.found: list[list[np.ndarray]] = []

    def after_step(self, run: Any, step: int, out: Any) -> None:
        if step % 3 == 0:
            state = run.state
            self.found.append([np.array(leaf) for leaf in jax.tree.leaves((state.variables, state.opt_state))])


@pytest.mark.parametrize(
    ("optimizer", "settings"),
    [("sgd", {}), ("adagrad", {"accumulate_steps": 2}), ("adam", {"steps_per_dispatch": 3})],
    ids=["sgd", "adagrad", "adam"],
)
def test_the_numbers_are_those_without_a_cache_bit_for_bit(
    tmp_path: Path, optimizer: str, settings: dict[str, Any]
) -> None:
    """Rows that leave the cache and come back, batches of misses alone, ids that repeat."""
    seen, evaluated = [Seen(), Seen()], []
    for cached_rows, hook in zip((0, 16), seen, strict=True):
        estimator = estimator_in(str(tmp_path / str(cached_rows)), cached_rows, optimizer, **settings)
        estimator.train(input_fn(STEPS), hooks=[hook])
        evaluated.append(estimator.evaluate(lambda: batches(2))["loss"])
    assert saved(tmp_path / "0") == saved(tmp_path / "16")
    assert len(seen[0].found) == STEPS // 3
    jax.tree.map(np.testing.assert_array_equal, *(hook.found for hook in seen))
    assert evaluated[0] == evaluated[1]
