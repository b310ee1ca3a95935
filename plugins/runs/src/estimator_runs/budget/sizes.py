"""Batch sizes: the memory of each by the analysis of the compiler, and the speed by measurement."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import estimator_core as ec
from estimator_core.errors import ArgumentError
from estimator_core.inputs import Batch
from estimator_core.lowering import trace_step
from estimator_runs.budget.step import started

_STEPS, _REPEATS = 5, 3


@dataclass(frozen=True, kw_only=True)
class BatchSize:
    """The measurements of one batch size.

    Args:
        size: the number of examples of a batch.
        memory: the bytes of a step: state, batch, results and intermediate values; None: the compiler had too little
            memory for the analysis.
        seconds: the seconds of a step; None: it was not run, because it does not fit.
    """

    size: int
    memory: int | None
    seconds: float | None

    @property
    def examples_per_second(self) -> float | None:
        """The throughput; None: it was not measured."""
        return None if self.seconds is None else self.size / self.seconds


def batch_sizes(
    estimator: ec.Estimator,
    input_fn: Callable[..., Any],
    *,
    memory: int | None = None,
    largest: int = 65536,
    hooks: Sequence[Any] = (),
) -> list[BatchSize]:
    """Doubles the batch size until a step does not fit. Each size is compiled for its memory, and run if it fits.

    Args:
        estimator: the Estimator, which is not changed. Nothing is written to its model_dir.
        input_fn: the training input. The rows of its first batch are repeated.
        memory: the bytes that a step may need; None: the memory of the device, or the free memory if it is a CPU.
        largest: the largest size that is tried.
        hooks: must be empty, because no hook is called.

    Returns:
        The sizes, ascending. If the last one does not fit, it has no seconds.

    Raises:
        ArgumentError: the step cannot be made outside a training call, or the batches of the input are larger than
            `largest`.
    """
    limit = free_memory() if memory is None else memory
    found: list[BatchSize] = []
    with started(estimator, input_fn, hooks) as (member, standing):
        batch = standing.draw()
        if batch is None:
            raise ArgumentError("The training input is empty: batch sizes need the rows of one batch.")
        size = batch.size
        if size > largest:
            raise ArgumentError(
                f"The batches of the training input have {size} examples, and the largest size to try is {largest}. "
                f"Make the batches of the input smaller, or allow larger ones: --largest {size} (largest={size})."
            )
        while size <= largest:
            one = member.estimator
            step = trace_step(one.model_fn, one.config, batch, jax.devices()[:1], batch_size=size)
            needed, seconds = None, None
            try:
                program = step.traced.lower().compile()
                needed = _needed(program)
                if needed <= limit:
                    seconds = _seconds(program, step.state, standing.state, batch, size)
            except (jax.errors.JaxRuntimeError, MemoryError) as error:
                if not isinstance(error, MemoryError) and "RESOURCE_EXHAUSTED" not in str(error):
                    raise
            found.append(BatchSize(size=size, memory=needed, seconds=seconds))
            if seconds is None:
                break
            size *= 2
    return found


def free_memory() -> int:
    """Returns the bytes of memory of the first device, or the free memory if it is a CPU."""
    told: Any = jax.devices()[0].memory_stats() or {}
    if "bytes_limit" in told:
        return int(told["bytes_limit"])
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _needed(program: Any) -> int:
    told = program.memory_analysis()
    arguments = told.argument_size_in_bytes + told.output_size_in_bytes - told.alias_size_in_bytes
    return int(arguments + told.temp_size_in_bytes)


def _seconds(program: Any, like: Any, first: Any, batch: Batch, size: int) -> float:
    """Returns the seconds of a step, the best of several measurements. They include the transfer of host batches."""
    rows = jax.tree.map(
        lambda leaf: np.resize(leaf, (size, *leaf.shape[1:])), (batch.features, batch.labels, batch.weights)
    )
    state = jax.tree.map(lambda leaf, known: jax.device_put(jnp.array(leaf), known.sharding), first, like)
    times: list[float] = []
    values: Any = None
    for _ in range(_REPEATS + 1):
        began = time.perf_counter()
        for _ in range(_STEPS):
            state, values = program(state, *rows)
        jax.block_until_ready(values)
        times.append((time.perf_counter() - began) / _STEPS)
    return min(times)
