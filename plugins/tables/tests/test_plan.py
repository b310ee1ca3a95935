"""Tests of plans for tables in the memory of the host, and for their caches."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import cached_program
import jax
import numpy as np
import pytest
from cached_program import BATCH, COLUMNS, ROWS, estimator_in

from estimator_core.backends import DeviceFigures, Topology
from estimator_core.errors import BackendUnavailableError
from estimator_core.inputs import Batch, InputPosition
from estimator_core.lowering import trace_step

plan = pytest.importorskip("estimator_plan")
pytestmark = pytest.mark.skipif(jax.__version_info__ < (0, 10, 2), reason="needs jax 0.10.2")


@pytest.mark.parametrize("cached_rows", [0, 16])
def test_a_plan_counts_the_cache_and_the_rows_that_travel(tmp_path: Any, cached_rows: int) -> None:
    """With Adam, a row has two slots. It is read once for the look-up and once for the update."""
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


class Cards:
    """A backend with or without an installed compiler."""

    workspace_bytes = 0

    def __init__(self, *, installed: bool) -> None:
        self.installed = installed

    def topology_devices(self, topology: Topology) -> Any:
        if not self.installed:
            raise BackendUnavailableError("the compiler is not installed.")
        return jax.devices()[: topology.device_count]


@pytest.mark.parametrize("installed", [True, False])
def test_tables_of_the_host_are_bounded_where_no_program_can_have_them(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, installed: bool
) -> None:
    """The compiler for absent cards does not support the memory of the host."""
    from estimator_plan import Found, plan_training, training_plan

    figures = DeviceFigures(
        kind="card",
        memory_bytes=2**30,
        peak_flops={"float32": 1e12},
        memory_bandwidth=1e11,
        link_bandwidth=1e10,
        group_size=4,
        network_bandwidth=1e9,
        source="invented",
    )
    monkeypatch.setattr(training_plan, "has_host_memory", lambda devices: False)
    estimator = estimator_in(str(tmp_path), 16)
    (features, labels), *_ = cached_program.batches(1)
    batch = Batch(features, labels, {}, BATCH, InputPosition("none", 0, 0, False, None))
    topology = Topology(name="card:1", device_count=1, host_count=1, figures=figures)
    found = plan_training(
        estimator, batch, Found(topology=topology, backend=Cards(installed=installed)), mesh={"data": 1}
    )
    assert found.memory.host == 3 * ROWS * COLUMNS * 4
    assert found.memory.needed < found.memory.at_most < found.memory.needed + 2**20
    assert not found.memory.compiled
    assert ("does not support host memory" if installed else "not installed") in found.notes[0]


def test_devices_that_know_the_memory_of_their_host_are_told_from_others() -> None:
    from estimator_plan.host_tables import has_host_memory

    assert has_host_memory(jax.devices())
    assert not has_host_memory([SimpleNamespace(addressable_memories=list)])
