"""Sorts short support tickets into queues with a very small transformer encoder.

The program bert_tpu.py of TensorFlow 1.15 after `estimator migrate rewrite --write`, with the notes followed by hand.
"""

import argparse
import logging
import os
import re
import tempfile

import jax
import jax.numpy as jnp
import numpy as np
import optax

import estimator_core as ec
import estimator_heads
import estimator_hooks
import estimator_inputs
from estimator_canned_bert.optimization import scale_by_bert_adam

log = logging.getLogger("tickets")
parser = argparse.ArgumentParser()
parser.add_argument("--output_dir", default=None, help="Checkpoints go here; a temp dir if unset.")
parser.add_argument("--backend", default="auto", help="'tpu' runs on a TPU.")
parser.add_argument("--seq_length", type=int, default=12, help="Tokens per ticket.")
parser.add_argument("--batch_size", type=int, default=32, help="Examples per batch, when training or evaluating.")
parser.add_argument("--save_steps", type=int, default=50, help="Steps between checkpoints.")
parser.add_argument("--num_train_steps", type=int, default=150, help="Total steps.")
FLAGS = parser.parse_args([])
VOCAB, HIDDEN, HEADS, LAYERS, QUEUES = 60, 16, 2, 2, 5


def make_tickets(count, seed, multiple_of=1):
    rng, n = np.random.RandomState(seed), FLAGS.seq_length
    queue = rng.randint(QUEUES, size=count)
    telling = 5 + queue[:, None] * 4 + rng.randint(4, size=(count, n))
    ids = np.where(rng.rand(count, n) < 0.4, telling, rng.randint(25, VOCAB, (count, n)))
    mask = (np.arange(n) < rng.randint(5, n + 1, size=count)[:, None]).astype(int)
    ids[:, 0] = 1
    table = {
        "input_ids": ids * mask,
        "input_mask": mask,
        "label_id": queue,
        "is_real_example": np.ones(count, int),
    }
    blank = (-count % multiple_of,)
    return {k: np.append(v, np.zeros(blank + v.shape[1:], int), 0) for k, v in table.items()}


def write_records(table, path):
    def record(i):
        example = ec.export.example_class()()
        for name, values in table.items():
            example.features.feature[name].int64_list.value.extend(np.ravel(values[i]).tolist())
        return example.SerializeToString()

    estimator_inputs.write_tfrecord(path, (record(i) for i in range(len(table["label_id"]))))
    return path


def file_input_fn_builder(path, seq_length, is_training, drop_remainder):
    def ints(*shape):
        return ec.export.FixedLenFeature(shape, np.int64)

    spec = {
        "input_ids": ints(seq_length),
        "input_mask": ints(seq_length),
        "label_id": ints(),
        "is_real_example": ints(),
    }

    def input_fn(params):
        return estimator_inputs.tfrecord_input_fn(
            path,
            params["batch_size"],
            spec,
            shuffle=is_training,
            shuffle_buffer_size=200,
            num_epochs=None if is_training else 1,
            drop_remainder=drop_remainder,
        )

    return input_fn


def memory_input_fn_builder(table):
    def input_fn(params):
        return ec.inputs.numpy_input_fn(
            {k: v.astype("int32") for k, v in table.items()}, batch_size=params["predict_batch_size"], shuffle=False
        )

    return input_fn


glorot, zeros, ones = jax.nn.initializers.glorot_uniform(), jax.nn.initializers.zeros, jax.nn.initializers.ones


def norm(t):
    with ec.variable_scope("LayerNorm"):
        beta, gamma = ec.get_variable("beta", t.shape[-1:], zeros), ec.get_variable("gamma", t.shape[-1:], ones)
    centred = t - t.mean(-1, keepdims=True)
    return centred * jax.lax.rsqrt(jnp.mean(centred**2, -1, keepdims=True) + 1e-12) * gamma + beta


def dense(t, size, name, act=lambda x: x):
    with ec.variable_scope(name):
        kernel = ec.get_variable("kernel", (t.shape[-1], size), glorot)
        return act(t @ kernel + ec.get_variable("bias", (size,), zeros))


def dropout(t, rate):
    if not rate:
        return t
    return jnp.where(jax.random.bernoulli(ec.next_rng_key(), 1 - rate, t.shape), t / (1 - rate), 0.0)


def encoder(ids, mask, rate):
    n = ids.shape[1]

    def split(t):
        return t.reshape(-1, n, HEADS, HIDDEN // HEADS).transpose(0, 2, 1, 3)

    with ec.variable_scope("encoder"):
        with ec.variable_scope("embeddings"):
            words = ec.get_variable("word_table", (VOCAB, HIDDEN), glorot)
            x = norm(words[ids] + ec.get_variable("place_table", (n, HIDDEN), glorot))
        bias = (1.0 - mask.astype(jnp.float32)[:, None, None, :]) * -1e4
        for i in range(LAYERS):
            with ec.variable_scope(f"layer_{i}/attention"):
                q, k, v = (split(dense(x, HIDDEN, s)) for s in ("query", "key", "value"))
                scores = q @ k.swapaxes(-1, -2) / np.float32(np.sqrt(HIDDEN // HEADS))
                mixed = (jax.nn.softmax(scores + bias) @ v).transpose(0, 2, 1, 3)
                mixed = dense(mixed.reshape(-1, n, HIDDEN), HIDDEN, "output")
                x = norm(x + dropout(mixed, rate))
            with ec.variable_scope(f"layer_{i}/feed_forward"):
                x = norm(x + dense(dense(x, 32, "inner", jax.nn.relu), HIDDEN, "outer"))
        return dense(x[:, 0], HIDDEN, "pooler", jnp.tanh)


def adam_decay(rate, decay=0.01, skip=("LayerNorm", "bias")):
    def decayed(params):
        return {name: not re.search("|".join(skip), name) for name in params}

    return optax.chain(
        scale_by_bert_adam(), optax.add_decayed_weights(decay, decayed), optax.scale_by_learning_rate(rate)
    )


def build_train_op(peak, total, warmup):
    falling = optax.polynomial_schedule(peak, 0.0, 1.0, total)

    def rate(step):
        return jnp.where(step < warmup, peak * step / max(warmup, 1), falling(step))

    return optax.chain(optax.clip_by_global_norm(1.0), adam_decay(rate))


def metric_fn(each, label_id, logits, real):
    guess = jnp.argmax(logits, axis=-1)
    billing, said = label_id == 0, guess == 0
    hit = (jax.lax.top_k(logits, 3)[1] == label_id[:, None]).any(1)
    return {
        "eval_accuracy": ec.metrics.accuracy(label_id, guess, real),
        "eval_loss": ec.metrics.mean(each, real),
        "billing_precision": estimator_heads.metrics.precision(billing, said, real),
        "billing_recall": estimator_heads.metrics.recall(billing, said, real),
        "top_3": ec.metrics.mean(hit.astype(jnp.float32), real),
    }


def model_fn_builder(init_checkpoint, learning_rate, num_steps, num_warmup, dropout_rate=0.1):
    def model_fn(features, mode):
        training = mode == ec.ModeKeys.TRAIN
        pooled = encoder(features["input_ids"], features["input_mask"], dropout_rate if training else 0.0)
        logits = dense(pooled, QUEUES, "queue_logits")
        if init_checkpoint:
            stored = ec.load_variables(init_checkpoint)
            assignment = {v.name: v for v in ec.trainable_variables() if v.name in stored}
            log.info("from %s: %s", init_checkpoint, sorted(assignment))
            ec.init_from_checkpoint(init_checkpoint, assignment)
        if mode == ec.ModeKeys.PREDICT:
            return ec.EstimatorSpec(
                mode, predictions={"probabilities": jax.nn.softmax(logits), "top_3": jax.lax.top_k(logits, k=3)[1]}
            )
        label_id = features["label_id"]
        each = optax.softmax_cross_entropy_with_integer_labels(logits, label_id)
        real = jnp.asarray(features.get("is_real_example", jnp.ones_like(label_id)), jnp.float32)
        loss = jnp.sum(each * real) / (jnp.sum(real) + 1e-5)
        if training:
            return ec.EstimatorSpec(mode, loss=loss, train_op=build_train_op(learning_rate, num_steps, num_warmup))
        return ec.EstimatorSpec(mode, loss=loss, eval_metric_ops=metric_fn(each, label_id, logits, real))

    return model_fn


def write_starting_checkpoint(folder):
    """A run that changes nothing has its initial values in a checkpoint."""

    def start_fn(features, mode):
        pooled = encoder(features["input_ids"], features["input_mask"], 0.0)
        return ec.EstimatorSpec(mode, loss=jnp.mean(pooled), train_op=optax.set_to_zero())

    batch = {name: np.ones([1, FLAGS.seq_length], np.int32) for name in ("input_ids", "input_mask")}
    start = ec.Estimator(start_fn, os.path.join(folder, "start"))
    return start.train(ec.inputs.numpy_input_fn(batch, batch_size=1, shuffle=False), steps=1).latest_checkpoint()


def main():
    logging.basicConfig(level=logging.INFO)
    parser.parse_args(namespace=FLAGS)
    work, every, total = tempfile.mkdtemp(), FLAGS.save_steps, FLAGS.num_train_steps
    dev = make_tickets(150, 2, multiple_of=FLAGS.batch_size)
    train_file = write_records(make_tickets(600, 1), os.path.join(work, "train.tf_record"))
    dev_file = write_records(dev, os.path.join(work, "dev.tf_record"))
    run_config = ec.RunConfig(
        model_dir=FLAGS.output_dir or os.path.join(work, "out"),
        tf_random_seed=11,
        save_checkpoints_steps=every,
        keep_checkpoint_max=2,
        backend=FLAGS.backend,
    )
    estimator = ec.Estimator(
        model_fn_builder(write_starting_checkpoint(work), 3e-3, total, total // 10),
        config=run_config,
        params={"batch_size": FLAGS.batch_size, "predict_batch_size": 8},
    )
    stopper = estimator_hooks.stop_if_no_decrease_hook(
        estimator, "eval_loss", 2 * every, run_every_secs=None, run_every_steps=every
    )
    train_input_fn = file_input_fn_builder(train_file, FLAGS.seq_length, True, True)
    eval_input_fn = file_input_fn_builder(dev_file, FLAGS.seq_length, False, FLAGS.backend == "tpu")
    for upto in range(every, total + 1, every):
        estimator.train(train_input_fn, max_steps=upto, hooks=[stopper])
        result = estimator.evaluate(eval_input_fn, steps=len(dev["label_id"]) // FLAGS.batch_size)
        log.info("after %d: %s", upto, sorted(result.items()))

    test = make_tickets(10, 3, multiple_of=8)
    outputs = estimator.predict(memory_input_fn_builder(test))
    for label, out in zip(test["label_id"][:10], outputs, strict=False):
        print(label, out["top_3"], np.round(out["probabilities"], 2))


if __name__ == "__main__":
    main()
