"""Builds the canned estimators here, with the defaults of the TensorFlow version that wrote the checkpoint."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import optax

import estimator_canned_tabular as tabular
import estimator_core as ec
from estimator_core.checkpoint import read_checkpoint
from estimator_heads import adagrad, adam, ftrl
from estimator_migration import convert, convert_checkpoint
from plugins.migration.tests.canned import cases

#: The optimizers of the names in TensorFlow 1: other epsilons, and another place for that of RMSProp.
NAMES_OF_1: dict[str, Callable[[float], optax.GradientTransformation]] = {
    "Adagrad": lambda rate: adagrad(rate, epsilon=0.0),
    "Adam": lambda rate: adam(rate, epsilon=1e-8),
    "Ftrl": ftrl,
    "RMSProp": lambda rate: optax.rmsprop(rate, decay=0.9, eps=1e-10, initial_scale=1.0),
    "SGD": optax.sgd,
}


class Differences(NamedTuple):
    """The largest differences after 100 steps, and the number of arrays.

    A slot above 1 is compared relative to its size.
    """

    weights: float
    slots: float
    arrays: int


def rate_of(estimator: str, part: str) -> float:
    """Returns the rate that an optimizer name implies in TensorFlow 1."""
    if part != "optimizer":
        return {"dnn_optimizer": 0.001, "linear_optimizer": 0.005}[part]
    return {"Baseline": 0.3, "Linear": 0.2}.get(cases.kind_of(estimator), 0.05)


def make(version: str, estimator: str, optimizer: str, config: ec.RunConfig) -> ec.Estimator:
    """Returns an estimator like the one that TensorFlow trained."""
    given = cases.arguments(estimator, tabular, optimizer)
    for part in [name for name in given if name.endswith("optimizer")]:
        if optimizer == "Momentum":
            given[part] = optax.sgd(cases.RATE, cases.MOMENTUM)
        elif version == "1.15.0":
            given[part] = NAMES_OF_1[optimizer](rate_of(estimator, part))
    if version == "1.15.0" and estimator.endswith("Classifier"):
        given["loss_reduction"] = "sum"
    if cases.kind_of(estimator) != "Baseline":
        every_row = optimizer == "Adam" or (optimizer == "RMSProp" and version == "2.15.1")
        given["row_sparse"] = False if every_row else "as_tf"
    return getattr(tabular, estimator)(config=config, **given)


def input_fn(estimator: str) -> Callable[[], object]:
    """Returns the batches that TensorFlow used, in the same order."""
    features, labels = cases.table(estimator)
    return ec.inputs.numpy_input_fn(features, labels, batch_size=cases.BATCH, num_epochs=None, shuffle=False)


def quiet(model_dir: Path) -> ec.RunConfig:
    """Returns a config that only writes checkpoints."""
    return ec.RunConfig(
        model_dir=str(model_dir), default_hooks=False, save_summary_steps=None, log_step_count_steps=None
    )


def differences(version: str, estimator: str, optimizer: str, written: Path, scratch: Path) -> Differences:
    """Converts step 50, trains 50 steps, and compares with step 100."""
    first = make(version, estimator, optimizer, quiet(scratch / "first"))
    convert_checkpoint(written / f"model.ckpt-{cases.STEPS}", scratch / "new", first, input_fn(estimator))
    return after_training(version, estimator, optimizer, written, scratch / "new")


def after_training(version: str, estimator: str, optimizer: str, written: Path, model_dir: Path) -> Differences:
    """Trains from step 50 in a converted model_dir, and compares with step 100."""
    make(version, estimator, optimizer, quiet(model_dir)).train(input_fn(estimator), max_steps=2 * cases.STEPS)
    found = read_checkpoint(model_dir)
    assert int(found.clock[0]) == 2 * cases.STEPS
    there = convert(found, ec.load_variables(written / f"model.ckpt-{2 * cases.STEPS}")).items
    weights = [np.abs(value - there.variables[path]).max() for path, value in found.variables.items()]
    slots = [
        np.abs((found.opt_state[leaf] - one) / np.maximum(1, np.abs(one))).max()
        for leaf, one in there.opt_state.items()
    ]
    return Differences(float(max(weights)), float(max(slots, default=0)), len(weights) + len(slots))
