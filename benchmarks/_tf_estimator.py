"""The process of tf.estimator: `python _tf_estimator.py WORKLOAD NAME=NUMBER ...` runs the workload for each line read.

Runs in an environment with tensorflow 2.15; nothing of this project is imported.
"""

import itertools
import os
import sys
import tempfile

import numpy as np
import tensorflow as tf

WIDTHS, BATCH = (64, 128, 128, 10), 32


def model_fn(features, labels, mode):
    """The network of `mlp.py` with the five metrics of `evaluation.py`."""
    v1 = tf.compat.v1
    x = features["x"]
    for index, (rows, columns) in enumerate(itertools.pairwise(WIDTHS)):
        kernel = v1.get_variable(f"kernel_{index}", (rows, columns), initializer=v1.glorot_uniform_initializer())
        x = x @ kernel + v1.get_variable(f"bias_{index}", (columns,), initializer=v1.zeros_initializer())
        x = tf.nn.relu(x) if index < len(WIDTHS) - 2 else x
    if mode == "infer":
        return tf.estimator.EstimatorSpec(mode, predictions={"logits": x})
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=x))
    step = (
        v1.train.AdamOptimizer(1e-3).minimize(loss, v1.train.get_or_create_global_step()) if mode == "train" else None
    )
    metrics = five_metrics(labels, x) if mode == "eval" else None
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=step, eval_metric_ops=metrics)


def five_metrics(labels, logits):
    """Returns accuracy and four means."""
    metrics = tf.compat.v1.metrics
    probabilities = tf.nn.softmax(logits)
    one_hot = tf.one_hot(labels, WIDTHS[-1])
    return {
        "accuracy": metrics.accuracy(labels, tf.argmax(logits, axis=1)),
        "top_3": metrics.mean(tf.cast(tf.nn.in_top_k(labels, logits, 3), tf.float32)),
        "brier": metrics.mean(tf.reduce_sum((probabilities - one_hot) ** 2, axis=1)),
        "confidence": metrics.mean(tf.reduce_max(probabilities, axis=1)),
        "entropy": metrics.mean(-tf.reduce_sum(probabilities * tf.nn.log_softmax(logits), axis=1)),
    }


def arrays(rows):
    """Returns features and labels."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(rows, WIDTHS[0])).astype(np.float32)
    return {"x": x}, generator.integers(0, WIDTHS[-1], size=rows).astype(np.int32)


def input_fn(rows, *, epochs=None, labelled=True):
    """Returns the input of tf.estimator itself."""
    x, y = arrays(rows)
    make = tf.compat.v1.estimator.inputs.numpy_input_fn
    return make(x, y if labelled else None, batch_size=BATCH, num_epochs=epochs, shuffle=epochs is None)


def estimator(**config):
    """Returns a new Estimator in a new directory."""
    return tf.estimator.Estimator(
        model_fn, tempfile.mkdtemp(prefix="bench-tf-"), tf.estimator.RunConfig(tf_random_seed=1, **config)
    )


def train(steps):
    """Trains with the default hooks."""
    ours, source = estimator(save_checkpoints_secs=None, save_checkpoints_steps=10**9), input_fn(4096)
    return lambda: ours.train(source, steps=steps)


def predict(rows):
    """Predicts single examples."""
    ours, source = estimator(), input_fn(rows, epochs=1, labelled=False)
    ours.train(input_fn(4096), steps=1)
    return lambda: sum(1 for _ in ours.predict(source))


def evaluate(batches):
    """Evaluates five metrics."""
    ours, source = estimator(), input_fn(batches * BATCH, epochs=1)
    ours.train(input_fn(4096), steps=1)
    return lambda: ours.evaluate(source)


def train_and_evaluate(steps, evaluations, batches):
    """Continues by the same number of steps every time."""
    ours = estimator(save_checkpoints_steps=steps // evaluations)
    source, held_out = input_fn(4096), input_fn(batches * BATCH, epochs=1)
    done = itertools.count(steps, steps)

    def run():
        tf.estimator.train_and_evaluate(
            ours,
            tf.estimator.TrainSpec(source, max_steps=next(done)),
            tf.estimator.EvalSpec(held_out, steps=batches, start_delay_secs=0, throttle_secs=0),
        )

    return run


def main():
    """Runs one round per line."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    tf.compat.v1.logging.set_verbosity("ERROR")
    run = globals()[sys.argv[1]](**{name: int(value) for name, value in (item.split("=") for item in sys.argv[2:])})
    for _ in sys.stdin:
        run()
        print("done", file=answers, flush=True)


if __name__ == "__main__":
    main()
