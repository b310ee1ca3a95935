"""Writes a checkpoint of TensorFlow as one of estimator-core."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from estimator_core.checkpoint import CheckpointStore, latest_checkpoint, load_variables, read_checkpoint
from estimator_core.errors import ArgumentError
from estimator_core.estimator import Estimator
from estimator_migration.checkpoints.convert import Converted, convert


def convert_checkpoint(
    path: str | os.PathLike[str],
    model_dir: str | os.PathLike[str],
    estimator: Estimator,
    input_fn: Callable[..., Any],
    *,
    names: Mapping[str, str] | None = None,
) -> Converted:
    """Converts a checkpoint of TensorFlow to a model_dir from which training continues.

    Args:
        path: a model_dir of tf.estimator, or a prefix (`model.ckpt-50`).
        model_dir: a new directory for the checkpoint.
        estimator: the model in estimator-core, with an empty model_dir of its own that may be deleted. One step is
            trained in it to determine the names and shapes of all arrays.
        input_fn: the function that returns a batch for that step.
        names: the names of arrays that differ: the name in TensorFlow, by name in estimator-core.

    Raises:
        ArgumentError: `model_dir` has checkpoints, or `names` contains arrays that the model does not have.
        CheckpointMismatchError: arrays are missing or have another shape.
    """
    if Path(model_dir).is_dir() and latest_checkpoint(os.fspath(model_dir)) is not None:
        raise ArgumentError(f"{os.fspath(model_dir)} already has checkpoints. Name a new directory.")
    tensors = load_variables(path)
    estimator.train(input_fn, steps=1)
    template = read_checkpoint(estimator.model_dir)
    known = {*template.variables, *template.model_state, *template.opt_state}
    if unknown := sorted((names or {}).keys() - known):
        raise ArgumentError(
            f"Names are given for arrays that the model does not have: {unknown}. It has {sorted(known)}."
        )
    converted = convert(template, tensors, names)
    with CheckpointStore(model_dir) as store:
        _ = store.save(converted.step, converted.items).path
    return converted
