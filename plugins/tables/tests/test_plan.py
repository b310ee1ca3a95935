"""What a plan says of tables in the memory of the host, and of their caches."""

from __future__ import annotations

from typing import Any

import cached_program
import jax
import numpy as np
import pytest
from cached_program import BATCH, COLUMNS, ROWS, estimator_in

from estimator_core.inputs import Batch, InputPosition
from estimator_core.lowering import trace_step

plan = pytest.importorskip("estimator_plan")
pytestmark = pytest.mark.skipif(jax.__version_info__ < (0, 10, 2), reason="needs jax 0.10.2")


@pytest.mark.parametrize("cached_rows", [0, 16])
def test_a_plan_counts_the_cache_and_the_rows_that_travel(tmp_path: Any, cached_rows: int) -> None:
    """With Adam: a row has two slots, and is read once to look it up and once to update it."""
    from estimator_plan.host_tables import HostRows, host_rows
    from estimator_plan.memory import measure_memory

    estimator = estimator_in(str(tmp_path), cached_rows)
    (features, labels), *_ = cached_program.batches(1)
    batch = Batch(features, labels, {}, BATCH, InputPosition("none", 0, 0, False, None))
    step = trace_step(estimator.model_fn, estimator.config, batch, jax.devices()[:1])
    memory, row = measure_memory(step, None, 2**30), COLUMNS * 4
    cache = (
        cached_rows * (3 * row + 8) + 12 if cached_rows else 0
    )  # a row, two slots, its number and time; the clock and hits
    kernel = COLUMNS * 4
    assert (memory.variables, memory.slots, memory.cache) == (kernel, 2 * kernel + 2 * 4, cache)
    assert (memory.host, memory.needed) == (3 * ROWS * row, memory.state + memory.batch)
    assert host_rows(step) == HostRows(read=4 * BATCH * 3 * row, written=3 * BATCH * 3 * row)
    state = estimator.train(lambda: [(features, labels)])
    assert np.isfinite(state.variables["kernel"]).all()
