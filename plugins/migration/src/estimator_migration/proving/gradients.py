"""The gradients of a loss, read from an optimizer that only stores them."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import optax

import estimator_core as ec
from estimator_core.checkpoint import read_checkpoint
from estimator_migration.checkpoints.slots import slot_of
from estimator_migration.proving.computed import Arrays
from estimator_migration.proving.starting import StartFrom


def keeping_gradients() -> optax.GradientTransformation:
    """An optimizer whose state is the last gradients that it received."""

    def init(params: optax.Params) -> Any:
        return jax.tree.map(jnp.zeros_like, params)

    def update(updates: optax.Updates, state: Any, params: optax.Params | None = None) -> tuple[optax.Updates, Any]:
        return jax.tree.map(jnp.zeros_like, updates), updates

    return optax.GradientTransformation(init, update)


def gradients(
    estimator: ec.Estimator, input_fn: Callable[..., Any], start: StartFrom, scratch: str | os.PathLike[str]
) -> tuple[float, Arrays]:
    """Loss and gradients of the first batch.

    Args:
        estimator: the estimator whose model_fn is differentiated; it is not trained.
        input_fn: returns the batch.
        start: sets the weights.
        scratch: a directory that may be deleted.
    """
    batch = estimator.first_batch(input_fn)
    assert batch is not None, "a recording has batches"
    model_fn = estimator.model_fn

    def probe(features: Any, labels: Any, mode: str, config: Any) -> ec.EstimatorSpec:
        spec = model_fn(features, labels, mode, config)
        return replace(spec, train_op=keeping_gradients(), training_hooks=(), training_chief_hooks=(), scaffold=None)

    def again() -> Any:
        yield batch.features, batch.labels

    seed = (estimator.config.tf_random_seed or 0) + 1  # another seed, so that random parts show
    config = estimator.config.replace(model_dir=str(Path(scratch)), tf_random_seed=seed)
    probing = ec.Estimator(probe, config=config)
    probing.train(again, hooks=[start], steps=1)
    items = read_checkpoint(probing.model_dir)
    slots = {slot_of(leaf, items.variables).variable: value for leaf, value in items.opt_state.items()}
    return start.losses[0], {name: value for name, value in slots.items() if name}
