"""Cases of operations that a format or an old reader may lack, each in its own model."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

import estimator_core as ec
from tests.export_matrix.cases import ROWS, Case, Sample, config, trained

WIDTH = 4
RNG = np.random.default_rng(1)
X = RNG.normal(size=(ROWS, WIDTH)).astype(np.float32)
IDS = RNG.integers(0, 6, (ROWS, 3)).astype(np.int32)


def doubled(x: jax.Array) -> jax.Array:
    return jax.lax.while_loop(lambda found: jnp.abs(found).sum() < 100, lambda found: found * 2, x)


def scanned(x: jax.Array) -> jax.Array:
    _, found = jax.lax.scan(lambda total, row: (total + row, total * 0.5 + row), jnp.zeros(x.shape[:1]), x.T)
    return found.T


def dropped(x: jax.Array, mode: str) -> jax.Array:
    if mode != ec.ModeKeys.TRAIN:
        return x
    return jnp.where(jax.random.bernoulli(ec.next_rng_key(), 0.5, x.shape), x / 0.5, 0.0)


def looked_up(ids: jax.Array) -> jax.Array:
    return ec.sparse_lookup("table", ids, (6, WIDTH), jax.nn.initializers.normal(0.5)).sum(axis=1)


def printed(x: jax.Array) -> jax.Array:
    jax.debug.print("{}", x[0, 0])
    return x


def doubled_outside(x: jax.Array) -> jax.Array:
    return jax.pure_callback(lambda value: np.asarray(value) * 2, jax.ShapeDtypeStruct(x.shape, x.dtype), x)


#: The operation on x of [batch, 4], by name.
PROGRAMS: dict[str, Callable[[Any, str], Any]] = {
    "top_k": lambda x, mode: jax.lax.top_k(x["x"], WIDTH)[0],
    "sort": lambda x, mode: jnp.sort(x["x"], axis=-1),
    "argsort": lambda x, mode: jnp.argsort(x["x"], axis=-1).astype(jnp.float32),
    "searchsorted": lambda x, mode: jnp.searchsorted(jnp.array([-1.0, 0.0, 1.0]), x["x"]).astype(jnp.float32),
    "while loop": lambda x, mode: doubled(x["x"]),
    "scan": lambda x, mode: scanned(x["x"]),
    "branch": lambda x, mode: jax.lax.cond(x["x"].sum() > 0, lambda: x["x"], lambda: -x["x"]),
    "batch norm": lambda x, mode: ec.module(lambda rngs: nnx.BatchNorm(WIDTH, rngs=rngs), name="norm")(x["x"]),
    "dropout in train mode": lambda x, mode: dropped(x["x"], mode),
    "row-sparse look-up": lambda x, mode: looked_up(x["ids"]),
    "gather along the batch": lambda x, mode: jnp.take_along_axis(x["x"], x["ids"] % WIDTH, axis=1),
    "scatter along the batch": lambda x, mode: (
        x["x"].at[jnp.arange(x["x"].shape[0])[:, None], x["ids"] % WIDTH].add(1.0)
    ),
    "bfloat16 inside": lambda x, mode: (x["x"].astype(jnp.bfloat16) * 2).astype(jnp.float32),
    "bfloat16 outputs": lambda x, mode: x["x"].astype(jnp.bfloat16) * 2,
    "erf, gelu, asinh": lambda x, mode: (
        jax.nn.gelu(jnp.arcsinh(x["x"]), approximate=False) + jax.scipy.special.erf(x["x"])
    ),
    "tan": lambda x, mode: jnp.tan(x["x"]),
    "cumulative sum": lambda x, mode: jnp.cumsum(x["x"], axis=1),
    "convolution": lambda x, mode: jax.vmap(lambda row: jnp.convolve(row, jnp.ones(3), "same"))(x["x"]),
    "singular values": lambda x, mode: jnp.linalg.svd(x["x"].reshape(-1, 2, 2), compute_uv=False),
    "Cholesky": lambda x, mode: jnp.linalg.cholesky(jnp.eye(2) + 0 * x["x"].reshape(-1, 2, 2)).reshape(-1, WIDTH),
    "sizes of the batch": lambda x, mode: x["x"] if x["x"].shape[0] > 1 else -x["x"],
    "print": lambda x, mode: printed(x["x"]),
    "callback": lambda x, mode: doubled_outside(x["x"]),
}


def make(name: str) -> Sample:
    """Returns a model with the operation and a loss."""

    def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
        found = PROGRAMS[name](features, mode)
        if mode == ec.ModeKeys.PREDICT:
            return ec.EstimatorSpec(mode, predictions={"y": found})
        y = jax.lax.stop_gradient(found.astype(jnp.float32)).sum(axis=-1) + ec.get_variable("offset", ())
        loss = jnp.mean((y - labels) ** 2)
        metrics = {"error": ec.metrics.mean(jnp.abs(y - labels))}
        return ec.EstimatorSpec(
            mode, predictions={"y": found}, loss=loss, train_op=optax.sgd(0.01), eval_metric_ops=metrics
        )

    return trained(ec.Estimator(model_fn, config=config()), {"x": X, "ids": IDS}, X[:, 0])


def cases() -> list[Case]:
    """Returns all cases. The cut tests each in the format with the oldest reader."""
    return [
        Case(group="programs", row=(name, ""), make=functools.partial(make, name), cut=("saved_model", mode))
        for name, mode in ((name, "train" if "train" in name else "infer") for name in PROGRAMS)
    ]
