"""Tests of the log at level INFO: it holds the messages of the core and of the program, but not those of orbax."""

import logging
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import optax
import pytest

import estimator_core as ec


def model_fn(features, labels, mode):
    loss = jnp.sum(ec.get_variable("w", (3,))) ** 2 + 0 * features.mean()
    return ec.EstimatorSpec(mode, loss=loss, train_op=optax.sgd(0.1))


def test_orbax_does_not_tell_how_it_works(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    config = ec.RunConfig(model_dir=str(tmp_path), save_checkpoints_steps=2)
    ec.Estimator(model_fn, config=config).train(lambda: [(np.ones((2, 3), np.float32), np.ones(2))] * 5, max_steps=5)
    logging.getLogger("absl").info("of the program")
    told = [record for record in caplog.records if "orbax" in record.pathname]
    assert len(told) <= 2, [record.getMessage() for record in told]  # messages from its import
    assert [record.getMessage() for record in told if record.levelno > logging.INFO] == []
    assert {"estimator_core", "absl"} <= {record.name for record in caplog.records}
    assert len(caplog.records) < 40  # before, there were 200; an import or jax may add a few
