"""Tests of runs with incremental saves: they resume like runs with full saves."""

from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import optax

import estimator_core as ec
from estimator_core._checkpoint.manifest import read_manifest

ROWS = 40_000


def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
    """A model of sums of rows of a table larger than one megabyte."""
    rows = ec.sparse_lookup("table", features["ids"], (ROWS, 8))
    loss = jnp.mean((rows.sum(axis=(1, 2)) - labels) ** 2)
    return ec.EstimatorSpec(mode, predictions={"sum": rows}, loss=loss, train_op=optax.adam(0.1))


IDS = np.random.default_rng(0).integers(0, ROWS, (64, 5)).astype(np.int32)
input_fn = ec.inputs.numpy_input_fn(
    {"ids": IDS}, np.ones(64, np.float32), batch_size=8, num_epochs=None, shuffle=True, seed=1
)


def estimator(model_dir: Path, full_every: int) -> ec.Estimator:
    config = ec.RunConfig(
        model_dir=str(model_dir), tf_random_seed=1, save_checkpoints_steps=1, full_checkpoint_every=full_every
    )
    return ec.Estimator(model_fn, config=config)


def test_it_ends_with_the_same_bits_also_where_it_was_begun_anew(tmp_path: Path) -> None:
    estimator(tmp_path / "plain", 1).train(input_fn, max_steps=9)
    for steps in (5, 9):
        estimator(tmp_path / "changes", 4).train(input_fn, max_steps=steps)
    plain, changes = ec.load_variables(str(tmp_path / "plain")), ec.load_variables(str(tmp_path / "changes"))
    assert plain["table"].tobytes() == changes["table"].tobytes()
    assert not (plain["table"][:100] == 0).all()
    directories = {step: tmp_path / "changes" / "checkpoints" / str(step) for step in (6, 7, 8, 9)}
    assert {read_manifest(directory).format for directory in directories.values()} == {3}
    assert read_manifest(tmp_path / "plain" / "checkpoints" / "9").format == 1
    sizes = [(directory / "arrays-0.pack").stat().st_size for directory in directories.values()]
    assert sizes[0] > 3 * plain["table"].nbytes  # the first save of the second run is a full one
    assert max(sizes[1:]) < sizes[0] / 100
