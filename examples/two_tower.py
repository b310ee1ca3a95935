"""A two-tower retrieval model with a Head, the three exporters, early stopping, and prediction in whole batches.

    uv run estimator run examples/two_tower.py
    uv run python examples/two_tower.py

`two_tower.toml` runs the same model from a file. The data are made up: users and items are vectors, and a user clicks
on an item that points in the same direction.
"""

from itertools import pairwise
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

import estimator_core as ec
from estimator_exporters import BestExporter, FinalExporter, LatestExporter
from estimator_heads import BinaryClassHead
from estimator_hooks import ProgressBarHook, StepCounterHook, stop_if_no_increase_hook

HPARAMS = ec.HParams(learning_rate=1e-3, batch_size=128, train_steps=2000, evaluate_every=200, seed=7)


class Tower(nnx.Module):
    """A stack of dense layers whose output has length one."""

    def __init__(self, in_features: int, hidden_units: list[int], rngs: nnx.Rngs):
        widths = [in_features, *hidden_units]
        self.layers = nnx.List(nnx.Linear(a, b, rngs=rngs) for a, b in pairwise(widths))

    def __call__(self, x):
        for layer in self.layers[:-1]:
            x = nnx.relu(layer(x))
        x = self.layers[-1](x)
        return x / (jnp.linalg.norm(x, axis=-1, keepdims=True) + 1e-6)


class CommonEstimator(ec.Estimator):
    """An Estimator of any network plus any head. The subclass defines only the model_fn."""

    def __init__(self, network, head, optimizer, **kwargs):
        def model_fn(features, labels, mode):
            logits = network(features, mode)
            return head.create_estimator_spec(
                features=features, mode=mode, logits=logits, labels=labels, optimizer=optimizer
            )

        super().__init__(model_fn, **kwargs)


def two_towers(features, mode):
    """Returns the logits: how well the vectors of a user and an item agree."""
    user = ec.module(lambda rngs: Tower(16, [64, 32], rngs), name="user_tower")(features["user"])
    item = ec.module(lambda rngs: Tower(16, [64, 32], rngs), name="item_tower")(features["item"])
    scale = ec.get_variable("scale", (), nnx.initializers.constant(5.0))
    return scale * jnp.sum(user * item, axis=-1, keepdims=True)


def clicks(examples, seed):
    """Returns synthetic users, items and clicks."""
    generator = np.random.default_rng(seed)
    user, item = generator.normal(size=(2, examples, 16)).astype(np.float32)
    agreement = np.sum(user * item, axis=1) + generator.normal(size=examples)
    return {"user": user, "item": item}, (agreement > 0).astype(np.int32)[:, None]


def model_fn(features, labels, mode, params):
    """Defines the same model without a subclass, for two_tower.toml."""
    return BinaryClassHead().create_estimator_spec(
        features=features,
        mode=mode,
        logits=two_towers(features, mode),
        labels=labels,
        optimizer=optax.adam(params.learning_rate),
    )


def recorded_clicks(file):
    """Returns clicks from an `np.save` file next to this script: each row has a user, an item, and 1 for a click."""
    rows = np.load(Path(__file__).parent / file)
    return {"user": rows[:, :16], "item": rows[:, 16:32]}, rows[:, 32:].astype(np.int32)


def click_batches(examples, seed, batch_size, training, file=None):
    """Returns the clicks as an input, for two_tower.toml, either from a file or synthetic."""
    return ec.inputs.numpy_input_fn(
        *(clicks(examples, seed) if file is None else recorded_clicks(file)),
        batch_size=batch_size,
        num_epochs=None if training else 1,
        shuffle=training,
        seed=seed,
    )


def auc_bigger(best_eval_result, current_eval_result):
    """Returns whether the current model ranks better."""
    return best_eval_result["auc"] < current_eval_result["auc"]


def experiment_fn(run_config, params):
    """Returns the Experiment: the model, its inputs and its plan."""
    estimator = CommonEstimator(
        two_towers,
        BinaryClassHead(),
        optax.adam(params.learning_rate),
        config=run_config.replace(save_checkpoints_steps=params.evaluate_every, keep_checkpoint_max=3),
    )
    features, labels = clicks(8192, params.seed)
    held_out, held_out_labels = clicks(2000, params.seed + 1)
    serving = ec.export.build_raw_serving_input_receiver_fn(
        {"user": ec.export.Feature((None, 16), "float32"), "item": ec.export.Feature((None, 16), "float32")}
    )
    patience = stop_if_no_increase_hook(
        estimator,
        "auc",
        max_steps_without_increase=3 * params.evaluate_every,
        run_every_secs=None,
        run_every_steps=params.evaluate_every,
    )
    return ec.Experiment(
        estimator=estimator,
        train_input_fn=ec.inputs.numpy_input_fn(
            features, labels, batch_size=params.batch_size, num_epochs=None, shuffle=True, seed=params.seed
        ),
        eval_input_fn=ec.inputs.numpy_input_fn(held_out, held_out_labels, batch_size=500, shuffle=False),
        train_steps=params.train_steps,
        min_eval_frequency=params.evaluate_every,
        eval_steps=None,
        train_hooks=[patience, ProgressBarHook(), StepCounterHook()],
        export_strategies=[
            BestExporter("best", serving, compare_fn=auc_bigger, exports_to_keep=1),
            FinalExporter("final", serving),
            LatestExporter("latest", serving, exports_to_keep=3),
        ],
    )


if __name__ == "__main__":
    metrics, exports = ec.learn_runner.run(
        experiment_fn,
        run_config=ec.RunConfig(model_dir="runs/two_tower", tf_random_seed=1),
        schedule="train_and_evaluate",
        hparams=HPARAMS,
    )
    print({name: round(float(metrics[name]), 4) for name in ("auc", "accuracy", "loss")})  # auc above 0.9
    served = ec.export.load(exports[1])  # the final export; reading it needs none of the code above
    users, _ = clicks(3, seed=0)
    print(served.signatures["predict"](**users)["probabilities"])
