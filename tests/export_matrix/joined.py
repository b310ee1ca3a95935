"""Joins many rows of the matrix in one model, so that the ordinary CI can test them within seconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import optax

import estimator_core as ec
from tests.export_matrix import programs
from tests.export_matrix.cases import Sample, config, trained

#: Operations that change the export of the whole model, or that formats cannot hold.
ALONE = ("sizes of the batch", "print", "callback")


def operations(names: Sequence[str]) -> Sample:
    """Returns one model with all of these operations, each for its own output."""

    def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
        found = {f"y{place}": programs.PROGRAMS[name](features, mode) for place, name in enumerate(names)}
        if mode == ec.ModeKeys.PREDICT:
            return ec.EstimatorSpec(mode, predictions=found)
        sums = [jax.lax.stop_gradient(value.astype(jnp.float32)).sum(axis=-1) for value in found.values()]
        loss = jnp.mean((sum(sums) + ec.get_variable("offset", ()) - labels) ** 2)
        return ec.EstimatorSpec(mode, predictions=found, loss=loss, train_op=optax.sgd(1e-6))

    features = {"x": programs.X, "ids": programs.IDS}
    return trained(ec.Estimator(model_fn, config=config()), features, programs.X[:, 0])
