"""A run that selects acme-roles by name for the roles of checkpoint policy, log and export check.

It runs in an environment with estimator-core, a format and acme-roles from wheels, in which no checkout can be
imported.
"""

import contextlib
import importlib
import io
import sys
import tempfile
from pathlib import Path

import numpy as np
import optax

import estimator_core as ec
from estimator_core.checkpoint import all_checkpoints
from estimator_core.errors import ExportError

ROLES = {"checkpoint_policy": "acme_doubling", "log": "acme_log", "export_check": "acme_counting"}
X = np.linspace(-1, 1, 32, dtype=np.float32)


def model_fn(features, labels, mode):
    y = features["x"] * ec.get_variable("slope", ())
    if mode == ec.ModeKeys.PREDICT:
        return ec.EstimatorSpec(mode, predictions={"y": y}, export_outputs={"serving": ec.export.PredictOutput(y)})
    return ec.EstimatorSpec(mode, loss=((y - labels) ** 2).mean(), train_op=optax.sgd(0.1))


def receiver():
    return ec.export.ServingInputReceiver({"x": ec.export.Feature((None,))})


def trained(folder, components):
    """Returns an estimator after 20 steps, the steps of its checkpoints, and the printed and logged lines."""
    said = io.StringIO()
    config = ec.RunConfig(
        model_dir=f"{folder}/model", components=components, save_checkpoints_steps=5, log_step_count_steps=5
    )
    estimator = ec.Estimator(model_fn, config=config)
    input_fn = ec.inputs.numpy_input_fn({"x": X}, 2 * X, batch_size=8, num_epochs=None, shuffle=False)
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        estimator.train(input_fn, max_steps=20)
    return estimator, [int(Path(path).name) for path in all_checkpoints(config.model_dir)], said.getvalue()


def exported(estimator, folder):
    return estimator.export_saved_model(f"{folder}/exports", receiver, format="stablehlo")


for module in (ec, importlib.import_module("acme_roles")):
    assert Path(module.__file__).is_relative_to(sys.prefix), f"not from a wheel: {module.__file__}"

with tempfile.TemporaryDirectory() as folder:
    estimator, steps, said = trained(folder, {})
    assert steps == [0, 5, 10, 15, 20], steps
    assert "acme:" not in said, said
    assert Path(exported(estimator, folder)).is_dir()
    from acme_roles.roles import Counting

    assert Counting.compared == []

with tempfile.TemporaryDirectory() as folder:
    estimator, steps, said = trained(folder, ROLES)
    assert steps == [1, 2, 4, 8, 16], steps
    assert [line.partition(",")[0] for line in said.splitlines() if line.startswith("acme:")] == [
        f"acme: step {step}" for step in (5, 10, 15, 20)
    ], said
    assert Path(exported(estimator, folder)).is_dir()
    assert Counting.compared == ["float32"], Counting.compared

with tempfile.TemporaryDirectory() as folder:
    estimator, _, _ = trained(folder, {"export_check": "acme_strict"})
    said = "the export was accepted"
    try:
        exported(estimator, folder)
    except ExportError as error:
        said = str(error)
    assert "is refused on principle." in said, said

print("policy, log and export check were replaced by name")
