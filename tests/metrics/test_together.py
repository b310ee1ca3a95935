"""Tests that totals computed together have the same bits as each total computed alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import estimator_core as ec
from estimator_core._metrics.base import TotalsMetric
from estimator_core._metrics.joint_totals import Together
from estimator_core._metrics.term_recording import noting
from estimator_core._metrics.totals import bucket_totals, total, total_value
from estimator_core.metrics import merge_metrics


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class Buckets(TotalsMetric):
    counts: jax.Array
    both: jax.Array

    def compute(self) -> float:
        return float(total_value(self.both))


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class Largest(TotalsMetric):
    """A metric that looks like a total but merges in another way."""

    largest: jax.Array

    def merge(self, other: Any) -> Any:
        return Largest(largest=jnp.maximum(self.largest, other.largest))

    def compute(self) -> float:
        return float(np.max(self.largest))


def metrics_of(values: jax.Array, wide: jax.Array, labels: jax.Array) -> dict[str, Any]:
    return {
        "loss": ec.metrics.mean(values.mean()),
        "plain": ec.metrics.mean(values),
        "weighted": ec.metrics.mean(values[::-1], weights=jnp.abs(values)),
        "wide": ec.metrics.mean(wide),
        "tiny": ec.metrics.mean(1e-30 * values),
        "accuracy": ec.metrics.accuracy(labels, (values > 0).astype(jnp.int32)),
        "jitted": jax.jit(ec.metrics.mean)(values),
        "mapped": ec.metrics.mean(jax.vmap(lambda row: total(row)[0])(wide)),
        "buckets": Buckets(counts=bucket_totals(labels, 3), both=total(labels)),
        "largest": Largest(largest=jnp.stack([values.max(), values.min()])),
    }


def drawn(seed: int, rows: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    values = (rng.normal(size=rows) * 10.0 ** rng.integers(-6, 7, size=rows)).astype(np.float32)
    wide = rng.normal(size=(rows, 5)).astype(np.float32)
    return values, wide, rng.integers(0, 2, size=rows).astype(np.int32)


def joined(*batch: Any) -> tuple[Any, Any]:
    with noting() as noted:
        metrics = metrics_of(*batch)
    return Together.of(metrics).joined(metrics, noted), metrics


def bits(tree: Any) -> list[bytes]:
    """Returns the bits of each array. All NaNs count as one value, whatever their sign."""
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]
    return [
        np.where(leaf == leaf, leaf, np.array(np.nan, leaf.dtype) if leaf.dtype.kind == "f" else leaf).tobytes()
        for leaf in leaves
    ]


@pytest.mark.parametrize("bad", [None, np.inf, np.nan])
def test_totals_side_by_side_have_the_bits_that_they_have_alone(bad: float | None) -> None:
    batches = [drawn(seed, 33) for seed in range(4)]
    if bad is not None:
        batches[2][0][5] = bad
    place = Together.of(jax.eval_shape(metrics_of, *batches[0]))
    of_batch: Callable[..., Any] = jax.jit(lambda *batch: joined(*batch)[0])
    by_itself, merge = jax.jit(metrics_of), jax.jit(merge_metrics)
    alone, together = by_itself(*batches[0]), of_batch(*batches[0])
    for batch in batches[1:]:
        alone, together = merge(alone, by_itself(*batch)), jax.jit(place.merged)(together, of_batch(*batch))
    apart = place.apart(jax.device_get(together))
    assert bits(apart) == bits(alone)
    assert {name: metric.compute() for name, metric in apart.items() if name != "buckets"}.keys() >= {
        "plain",
        "largest",
    }


def test_totals_take_two_arrays_whatever_their_number() -> None:
    arrays, _ = jax.eval_shape(joined, *drawn(0, 8))
    # All sums, all counts, the buckets, and the metric with its own merge.
    assert [(array.shape, array.dtype.name) for array in arrays] == [
        ((2, 8), "float32"),
        ((2, 9), "uint32"),
        ((2, 3), "uint32"),
        ((2,), "float32"),
    ]


def test_their_sums_take_the_kernels_of_one() -> None:
    def sums(count: int) -> int:
        def some(values: jax.Array) -> Any:
            with noting() as noted:
                metrics = {f"m{place}": ec.metrics.mean(values * (place + 1)) for place in range(count)}
            return Together.of(metrics).joined(metrics, noted)

        program = jax.jit(some).lower(np.ones(8, np.float32)).compile().as_text()
        return str(program).count("reduce(")

    assert sums(8) == sums(2)
