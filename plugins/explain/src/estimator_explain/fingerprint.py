"""A metric that differs between two evaluations if their predictions differ in any bit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp

import estimator_core as ec

#: The name of the metric.
FINGERPRINT = "estimator_explain/predictions"


def with_fingerprint(inner: Callable[..., ec.EstimatorSpec]) -> Callable[..., ec.EstimatorSpec]:
    """Returns a model_fn whose evaluations have the fingerprint too, if their spec has real or complex predictions.

    Classes alone do not suffice: a feature may change the loss, but no class.
    """

    def model_fn(features: Any, labels: Any, mode: str, config: Any) -> ec.EstimatorSpec:
        spec = inner(features, labels, mode, config)
        leaves = [jnp.asarray(leaf) for leaf in jax.tree.leaves(spec.predictions)]
        leaves = [leaf for leaf in leaves if not jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)]
        if mode != ec.ModeKeys.EVAL or not any(jnp.issubdtype(leaf.dtype, jnp.inexact) for leaf in leaves):
            return spec
        total = sum((_mixed(leaf, place) for place, leaf in enumerate(leaves)), jnp.zeros((), jnp.uint32))
        # The first 24 bits are exact in float32. Padding rows count too: they are the same in every evaluation.
        metric = ec.metrics.mean((total >> 8).astype(jnp.float32))
        return replace(spec, eval_metric_ops={**(spec.eval_metric_ops or {}), FINGERPRINT: metric})

    return model_fn


def _mixed(leaf: jax.Array, place: int) -> jax.Array:
    """Returns a hash of an array, in which each bit and its place count, as a scalar uint32."""
    bits = _bits(leaf).ravel()
    flat = bits + jnp.arange(bits.size, dtype=jnp.uint32) * jnp.uint32(0x9E3779B9) + jnp.uint32(place)
    flat = (flat ^ (flat >> 16)) * jnp.uint32(0x85EBCA6B)
    flat = (flat ^ (flat >> 13)) * jnp.uint32(0xC2B2AE35)
    return jnp.sum(flat ^ (flat >> 16), dtype=jnp.uint32)


def _bits(leaf: jax.Array) -> jax.Array:
    if jnp.issubdtype(leaf.dtype, jnp.complexfloating):
        return _bits(jnp.stack([leaf.real, leaf.imag]))
    if leaf.dtype.itemsize == 8:  # the result has two numbers for each value
        return jax.lax.bitcast_convert_type(leaf, jnp.uint32)
    is_float = jnp.issubdtype(leaf.dtype, jnp.floating)
    return jax.lax.bitcast_convert_type(leaf.astype(jnp.float32), jnp.uint32) if is_float else leaf.astype(jnp.uint32)
