"""One ready-made and one custom Estimator for the same plant-sorting task.

The program paper.py of TensorFlow 1.15 after `estimator migrate rewrite --write`, with the notes followed by hand.
"""

import argparse
import json
import os
import tempfile

import jax
import jax.numpy as jnp
import numpy as np
import optax

import estimator_canned_tabular as tabular
import estimator_core as ec
import estimator_exporters
import estimator_heads

MEASURES = ("stem", "leaf", "petal", "seed")
KINDS = 3


def measure_plants(count, seed):
    rng = np.random.RandomState(seed)
    centres = np.random.RandomState(0).uniform(1, 5, size=(KINDS, len(MEASURES)))
    kinds = rng.randint(KINDS, size=count)
    values = centres[kinds] + rng.normal(0, 0.7, size=(count, len(MEASURES)))
    table = {m: values[:, i].astype(np.float32) for i, m in enumerate(MEASURES)}
    return table, kinds.astype(np.int32)


train_input = ec.inputs.numpy_input_fn(
    *measure_plants(900, seed=1), batch_size=30, num_epochs=None, shuffle=True, seed=1
)
eval_input = ec.inputs.numpy_input_fn(*measure_plants(300, seed=2), batch_size=50, num_epochs=1, shuffle=False)
serving_input = ec.export.build_raw_serving_input_receiver_fn({m: np.zeros(1, np.float32) for m in MEASURES})


def dense(x, units, name):
    with ec.variable_scope(name):
        kernel = ec.get_variable("kernel", (x.shape[-1], units), jax.nn.initializers.glorot_uniform())
        return x @ kernel + ec.get_variable("bias", (units,), jax.nn.initializers.zeros)


def highway(x, name):
    """Mixes a transformed input with the input itself."""
    size = x.shape[-1]
    glorot = jax.nn.initializers.glorot_uniform()
    with ec.variable_scope(name):
        weights = ec.get_variable("weights", (size, size), glorot)
        gate_w = ec.get_variable("gate_weights", (size, size), glorot)
        gate_b = ec.get_variable("gate_bias", (size,), jax.nn.initializers.constant(-1.0))
        gate = jax.nn.sigmoid(x @ gate_w + gate_b)
        return gate * jax.nn.relu(x @ weights) + (1.0 - gate) * x


def body(features, params):
    x = jnp.stack([features[m] for m in sorted(MEASURES)], axis=1)
    x = jax.nn.relu(dense(x, params["units"], "widen"))
    for i in range(params["depth"]):
        x = highway(x, f"highway_{i}")
    return dense(x, KINDS, "logits")


def custom_model_fn(features, labels, mode, params):
    logits = body(features, params)
    kind = jnp.argmax(logits, axis=1)
    predictions = {"kind": kind, "probabilities": jax.nn.softmax(logits)}
    if mode == ec.ModeKeys.PREDICT:
        return ec.EstimatorSpec(
            mode, predictions=predictions, export_outputs={"sort": ec.export.PredictOutput(predictions)}
        )

    loss = optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()
    accuracy = ec.metrics.accuracy(labels, kind)
    if mode == ec.ModeKeys.EVAL:
        entropy = -jnp.sum(predictions["probabilities"] * jax.nn.log_softmax(logits), 1)
        return ec.EstimatorSpec(
            mode,
            predictions=predictions,
            loss=loss,
            eval_metric_ops={"accuracy": accuracy, "mean_entropy": ec.metrics.mean(entropy)},
        )

    ec.summary.scalar("batch_accuracy", jnp.mean(labels == kind))
    return ec.EstimatorSpec(mode, loss=loss, train_op=estimator_heads.adagrad(params["rate"]))


class LifeCycleHook(ec.Hook):
    """Notes each call; asks for the loss and stops at a good enough one."""

    def __init__(self, target=None):
        self._target = target
        self.calls, self.losses = [], []

    def begin(self, run):
        self.calls.append("begin")

    def after_create(self, run):
        self.calls.append(f"after_create@{run.step}")

    def before_step(self, run, step):
        if not self.losses:
            self.calls.append("before_step")

    def after_step(self, run, step, out):
        self.losses.append(float(out["loss"]))
        if len(self.losses) == 1:
            self.calls.append("after_step")
        if self._target and np.mean(self.losses[-20:]) < self._target:
            self.calls.append(f"request_stop@{step}")
            run.request_stop("the loss is good enough")

    def end(self, run):
        self.calls.append(f"end@{run.step}")


def show_roles():
    """Prints what RunConfig makes of TF_CONFIG for every role of one cluster."""
    cluster = {"chief": ["c0:2222"], "worker": ["w0:2222", "w1:2222"]}
    own = os.environ.get("TF_CONFIG")
    for role, index in (("chief", 0), ("worker", 1), ("evaluator", 0)):
        os.environ["TF_CONFIG"] = json.dumps({"cluster": cluster, "task": {"type": role, "index": index}})
        c = ec.RunConfig()
        print(f"{c.task_type:<9} chief={c.is_chief!s:<5} processes={c.process_group}")
    os.environ.pop("TF_CONFIG")
    if own is not None:
        os.environ["TF_CONFIG"] = own


def estimators(root, rate=0.1):
    columns = [tabular.numeric_column(m) for m in MEASURES]
    config = ec.RunConfig(save_checkpoints_steps=60, tf_random_seed=9)
    params = {"units": 12, "depth": 2, "rate": rate}
    return {
        "canned": tabular.DNNClassifier(
            hidden_units=[12, 12],
            feature_columns=columns,
            n_classes=KINDS,
            config=config,
            optimizer=lambda: estimator_heads.adagrad(0.05),  # rate and reduction of TensorFlow 1
            loss_reduction="sum",
            model_dir=os.path.join(root, "canned"),
        ),
        "custom": ec.Estimator(custom_model_fn, params=params, config=config, model_dir=os.path.join(root, "custom")),
    }


def main(args):
    show_roles()
    root = args.model_dir or tempfile.mkdtemp()
    for name, estimator in estimators(root).items():
        hook = LifeCycleHook(args.target if name == "custom" else None)
        result = ec.train_and_evaluate(
            estimator,
            ec.TrainSpec(train_input, max_steps=args.steps, hooks=[hook]),
            ec.EvalSpec(eval_input, exporters=estimator_exporters.FinalExporter("sorter", serving_input)),
        )
        print(name, " ".join(hook.calls))
        print(name, {k: round(float(v), 3) for k, v in result[0].items()})


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--model_dir", default=None)
    parser.add_argument("--steps", type=int, default=240)
    parser.add_argument("--target", type=float, default=0.36)
    main(parser.parse_args())
