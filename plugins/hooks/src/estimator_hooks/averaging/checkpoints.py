"""The averaged weights of a checkpoint, for evaluation, prediction and export."""

from __future__ import annotations

import dataclasses
import os

import numpy as np

from estimator_core.checkpoint import CheckpointStore, checkpoint_step, read_checkpoint, resolve_checkpoint
from estimator_core.errors import HookError
from estimator_hooks.averaging.transformation import FIELD, how_to_keep


def load_averaged_variables(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Returns the averages in a checkpoint, by variable path. Tables of `ec.sparse_lookup` have no average.

    The averages of variables in bfloat16 or float16 are float32.

    Args:
        path: a checkpoint, or a model_dir (its newest checkpoint).

    Raises:
        CheckpointNotFoundError: there is no checkpoint.
        HookError: the checkpoint has no averages.
    """
    checkpoint = resolve_checkpoint(path)
    slots = read_checkpoint(checkpoint, ("opt_state",)).opt_state
    averages = {name.split(f"/{FIELD}/", 1)[1]: value for name, value in slots.items() if f"/{FIELD}/" in name}
    if not averages:
        tables = any(name.endswith(f"/{FIELD}") for name in slots)
        raise HookError(f"The checkpoint {checkpoint} holds no average of the weights. {how_to_keep(tables=tables)}")
    return averages


def write_averaged_checkpoint(path: str | os.PathLike[str], directory: str | os.PathLike[str]) -> str:
    """Writes a checkpoint whose variables are the averages of another checkpoint, and returns its path.

    Variables without an average keep their values: tables of `ec.sparse_lookup`, and those that are not trained.

    `estimator.predict(..., checkpoint_path=...)`, `evaluate` and `export_saved_model` accept it. It has no optimizer
    state, so training cannot continue from it.

    Args:
        path: a checkpoint, or a model_dir (its newest checkpoint).
        directory: the parent directory: the new checkpoint is `<directory>/checkpoints/<step>`.

    Raises:
        CheckpointNotFoundError: there is no checkpoint.
        HookError: the checkpoint has no averages.
    """
    checkpoint = resolve_checkpoint(path)
    averages = load_averaged_variables(checkpoint)
    items = read_checkpoint(checkpoint, ("variables", "model_state"))
    rounded = {path: value.astype(items.variables[path].dtype, copy=False) for path, value in averages.items()}
    averaged = dataclasses.replace(items, variables={**items.variables, **rounded})
    with CheckpointStore(directory) as store:
        return store.save(checkpoint_step(checkpoint), averaged).path
