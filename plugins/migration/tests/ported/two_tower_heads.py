"""Two-tower recipe recommender: a subclassed Keras model under an Estimator.

The program two_tower_heads.py of TensorFlow 2.15.1 after `estimator migrate rewrite --write`, with the notes followed
by hand.
"""

import dataclasses
import os
import tempfile

import jax.numpy as jnp
import keras
import numpy as np
from absl import app, flags

import estimator_canned_tabular as fc
import estimator_core as ec
import estimator_exporters
import estimator_heads
import estimator_hooks
import estimator_inputs

flags.DEFINE_string("model_dir", None, "An existing output folder; a temp dir if unset.")
flags.DEFINE_string("units", "16,8", "Hidden units of either tower.")
flags.DEFINE_float("learning_rate", 0.03, "Adam's learning rate.")
flags.DEFINE_integer("batch_size", 50, "Batch size everywhere.")
flags.DEFINE_integer("max_train_steps", 200, "Steps of the main training.")
FLAGS = flags.FLAGS
WORDS = ["spicy", "sweet", "quick", "vegan", "baked", "grilled", "soup", "salad"]
DIETS = ["any", "vegetarian", "vegan"]


def as_example(label, **texts):
    example = ec.export.example_class()()
    for name, values in texts.items():
        example.features.feature[name].bytes_list.value.extend(v.encode() for v in values)
    example.features.feature["label"].int64_list.value.append(label)
    return example.SerializeToString()


def write_examples(path, rows, seed):
    rng = np.random.RandomState(seed)
    records = []
    for _ in range(rows):
        likes = rng.choice(WORDS, rng.randint(1, 4), replace=False)
        tags = rng.choice(WORDS, rng.randint(0, 4), replace=False)  # may be empty
        click = len(set(likes) & set(tags)) > 0 and rng.rand() < 0.9
        reader = [f"r{rng.randint(300)}"]
        diet = [rng.choice(DIETS)]
        author = [f"a{rng.randint(40)}"]
        records.append(as_example(int(click), reader_id=reader, diet=diet, likes=likes, tags=tags, author=author))
    estimator_inputs.write_tfrecord(path, records)
    return path


def make_columns():
    vocab, hashed = fc.categorical_column_with_vocabulary_list, fc.categorical_column_with_hash_bucket
    reader = [
        fc.indicator_column(vocab("diet", DIETS)),
        fc.embedding_column(hashed("reader_id", 64), 4),
        fc.embedding_column(vocab("likes", WORDS, num_oov_buckets=1), 6, combiner="mean"),
    ]
    recipe = [
        fc.embedding_column(hashed("author", 16), 4),
        fc.embedding_column(vocab("tags", WORDS, num_oov_buckets=1), 6, combiner="mean"),
    ]
    return reader, recipe


class TwoTower(keras.Model):
    """Takes the columns of either tower, side by side."""

    def __init__(self, units, dropout):
        super().__init__()
        self._dense = [[keras.layers.Dense(u, "selu") for u in units] for _ in range(2)]
        self._norms = [keras.layers.BatchNormalization(momentum=0.8) for _ in range(2)]
        self._dropout = keras.layers.Dropout(dropout)
        self._scale = keras.layers.Dense(1, name="scale")

    def call(self, inputs, training=None, mask=None):
        sides = []
        for net, layers, norm in zip(inputs, self._dense, self._norms, strict=True):
            for layer in layers:
                net = self._dropout(layer(net), training=training)
            sides.append(l2_normalize(norm(net, training=training)))
        return self._scale(jnp.sum(sides[0] * sides[1], axis=1, keepdims=True))


def l2_normalize(x):
    return x / jnp.sqrt(jnp.maximum(jnp.sum(x**2, axis=1, keepdims=True), 1e-12))


class ClickHead(estimator_heads.BinaryClassHead):
    """Binary head that reports one more metric and brings hooks."""

    def __init__(self, model_dir, **kwargs):
        super().__init__(**kwargs)
        self._out = model_dir

    def metrics(self, features, logits, labels, mode=None, regularization_losses=None):
        found = super().metrics(features, logits, labels, mode, regularization_losses)
        found["mean_logit"] = ec.metrics.mean(logits)
        return found

    def create_estimator_spec(self, features, mode, logits, labels=None, **kwargs):
        spec = super().create_estimator_spec(features, mode, logits, labels, **kwargs)
        if mode != ec.ModeKeys.TRAIN:
            return spec
        ec.tensor("click_loss", spec.loss)
        ec.tensor("rate", jnp.mean(spec.predictions["logistic"]))
        hooks = [
            estimator_hooks.NanTensorHook("click_loss"),
            estimator_hooks.ProfilerHook(save_steps=40, output_dir=self._out),
            estimator_hooks.SummarySaverHook(save_steps=20, output_dir=self._out),
            estimator_hooks.FinalOpsHook({"final_rate": "rate"}),
        ]
        return dataclasses.replace(spec, training_hooks=(*spec.training_hooks, *hooks))


def tower_estimator(columns, units, dropout, head, config, params=None, warm_start_from=None):
    plan = fc.FeaturePlan.of([column for side in columns for column in side])

    def model_fn(features, labels, mode, params):
        inputs = [
            fc.dense_features(side, features, plan, scope=f"two_tower/{name}", row_sparse=False)
            for side, name in zip(columns, ("reader", "recipe"), strict=True)
        ]
        logits = ec.module(lambda: TwoTower(units, dropout), name="two_tower")(inputs)
        optimizer = None
        if mode == ec.ModeKeys.TRAIN:
            optimizer = fc.choose_optimizer("Adam", params["learning_rate"]).transformation
        return head.create_estimator_spec(
            features=features, mode=mode, logits=logits, labels=labels, optimizer=optimizer
        )

    model_fn.host_transforms = plan.transforms()
    return ec.Estimator(model_fn, config=config, params=params, warm_start_from=warm_start_from)


class AnnounceSaves(ec.CheckpointListener):
    def begin(self, run):
        self.steps = []

    def after_save(self, run, step, checkpoint):
        self.steps.append(step)

    def end(self, run, step):
        print("checkpoints at", self.steps)


def input_fn(path, spec, epochs, shuffle_buffer_size=None):
    return estimator_inputs.make_batched_features_dataset(
        path,
        FLAGS.batch_size,
        spec,
        label_key="label",
        num_epochs=epochs,
        shuffle=bool(shuffle_buffer_size),
        shuffle_buffer_size=shuffle_buffer_size,
        drop_final_batch=True,
    )


def auc_grew(best_eval_result, current_eval_result):
    return best_eval_result["auc"] < current_eval_result["auc"]


def main(_):
    root = FLAGS.model_dir or tempfile.mkdtemp()
    train_file = write_examples(os.path.join(root, "train.rec"), 2000, seed=21)
    eval_file = write_examples(os.path.join(root, "eval.rec"), 420, seed=22)
    reader, recipe = make_columns()
    serve_spec = fc.make_parse_example_spec(reader + recipe)
    spec = dict(serve_spec, label=ec.export.FixedLenFeature((1,), "int64"))
    units = [int(u) for u in FLAGS.units.split(",")]
    train_input = input_fn(train_file, spec, None, shuffle_buffer_size=1000)
    eval_input = input_fn(eval_file, spec, 1, shuffle_buffer_size=None)

    def make_estimator(name, warm_start_from=None):
        folder = os.path.join(root, name)
        config = ec.RunConfig(
            model_dir=folder, save_summary_steps=20, save_checkpoints_steps=100, keep_checkpoint_max=3
        )
        head = ClickHead(folder, thresholds=[0.3, 0.7])
        params = {"learning_rate": FLAGS.learning_rate}
        return tower_estimator((reader, recipe), units, 0.1, head, config, params, warm_start_from)

    first = make_estimator("first").train(train_input, steps=30)
    warm = ec.WarmStartSettings(first.model_dir, vars_to_warm_start=".*embedding_weights.*")
    estimator = make_estimator("second", warm)
    receiver = ec.export.build_parsing_serving_input_receiver_fn(serve_spec)
    train_spec = ec.TrainSpec(
        train_input,
        max_steps=FLAGS.max_train_steps,
        saving_listeners=[AnnounceSaves()],
        hooks=[
            estimator_hooks.LoggingTensorHook({"loss": "click_loss"}, every_n_iter=20),
            estimator_hooks.StepCounterHook(every_n_steps=20, output_dir=estimator.model_dir),
            estimator_hooks.GlobalStepWaiterHook(wait_until_step=0),
            estimator_hooks.StopAtStepHook(last_step=FLAGS.max_train_steps),
        ],
    )
    eval_spec = ec.EvalSpec(
        eval_input,
        steps=None,
        name="held_out",
        start_delay_secs=0,
        throttle_secs=0,
        exporters=[
            estimator_exporters.BestExporter("best", receiver, compare_fn=auc_grew, exports_to_keep=1),
            estimator_exporters.FinalExporter("final", receiver),
            estimator_exporters.LatestExporter("latest", receiver, exports_to_keep=2),
        ],
    )
    metrics, _ = ec.train_and_evaluate(estimator, train_spec, eval_spec)
    print({k: round(float(v), 3) for k, v in sorted(metrics.items())})
    batches = estimator.predict(eval_input, ["logistic", "class_ids"], yield_single_examples=False)
    print({k: v[:5, 0] for k, v in next(batches).items()})


if __name__ == "__main__":
    app.run(main)
