"""Exports of a model that is split over devices: `spread_model.py FORMAT FOLDER MESH_JSON`, in each process of a run.

Variables and activations are split, by axis names and by axes of the mesh. FOLDER receives the predictions of the
estimator in `expected.json`, and exports. `model/export/last` is written by an exporter of the run, `first` by process
0 only. One export per process comes from a call in all processes at once.
"""

import json
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import PartitionSpec

import estimator_core as ec
from estimator_exporters import FinalExporter

WIDTH, ROWS = 8, 16
X = np.random.default_rng(0).normal(size=(ROWS, WIDTH)).astype(np.float32)


def model_fn(features, labels, mode):
    normal = jax.nn.initializers.normal(0.5)
    x = ec.with_logical_constraint(features["x"], ("batch", None))
    hidden = jnp.tanh(x @ ec.gathered(ec.get_variable("hidden/kernel", (WIDTH, 16), normal)))
    hidden = jax.lax.with_sharding_constraint(hidden, PartitionSpec(None, "model"))
    y = (hidden @ ec.get_variable("output/kernel", (16, 8), normal)).sum(axis=-1)
    if mode == ec.ModeKeys.PREDICT:
        return ec.EstimatorSpec(mode, predictions={"y": y})
    metrics = {"error": ec.metrics.mean(jnp.abs(y - labels))}
    loss = jnp.mean((y - labels) ** 2)
    return ec.EstimatorSpec(mode, predictions={"y": y}, loss=loss, train_op=optax.sgd(0.01), eval_metric_ops=metrics)


def receiver():
    return ec.export.ServingInputReceiver({"x": ec.export.Feature((None, WIDTH))})


def supervised():
    features = {"x": ec.export.Feature((None, WIDTH))}
    return ec.export.SupervisedInputReceiver(features, labels=ec.export.Feature((None,)))


def main(format_name, folder, mesh):
    config = ec.RunConfig(
        model_dir=str(folder / "model"),
        tf_random_seed=1,
        mesh=mesh,
        partition_rules=[(".*output/.*", ec.FullySharded(base=("model",))), (".*", ec.FullySharded())],
    )
    estimator = ec.Estimator(model_fn, config=config)
    exporter = FinalExporter("last", receiver, format=format_name)
    ec.train_and_evaluate(
        estimator,
        ec.TrainSpec(lambda: [({"x": X}, X[:, 0])] * 2, max_steps=2),
        ec.EvalSpec(lambda: [({"x": X}, X[:, 0])], exporters=[exporter], start_delay_secs=0, throttle_secs=0),
    )
    predicted = [float(row["y"]) for row in estimator.predict(lambda: [{"x": X}])]
    receivers = {"infer": receiver, "eval": supervised, "train": supervised}
    for name in ["all", *(["first"] if estimator.config.is_chief else [])]:
        base = folder / "exports" / f"{name}_{jax.process_index()}"
        estimator.experimental_export_all_saved_models(str(base), receivers, format=format_name)
    if estimator.config.is_chief:
        (folder / "expected.json").write_text(json.dumps(predicted[:ROWS]))  # each process reads all rows


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3]))
