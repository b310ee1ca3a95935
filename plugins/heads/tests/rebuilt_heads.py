"""Heads and batches of this package, built from the data of a recorded case."""

import jax
import jax.numpy as jnp
import numpy as np

import estimator_heads as eh
from estimator_core.inputs import apply_transforms


def absolute(labels, logits):
    return jnp.abs(labels - logits)


def mean_absolute(labels, logits):
    return jnp.mean(absolute(labels, logits), axis=-1, keepdims=True)


def label_times_mean_logit(labels, logits):
    return labels * jnp.mean(logits, axis=-1, keepdims=True)


def scaled_absolute(labels, logits, features):
    return features["scale"] * absolute(labels, logits)


def no_labels(logits):
    return logits


def unexpected_argument(labels, logits, extra):
    return logits


def wrong_shape(labels, logits):
    return jnp.sum(logits, axis=0, keepdims=True)


FUNCTIONS = {
    "absolute": absolute,
    "mean_absolute": mean_absolute,
    "label_times_mean_logit": label_times_mean_logit,
    "scaled_absolute": scaled_absolute,
    "no_labels": no_labels,
    "unexpected_argument": unexpected_argument,
    "wrong_shape": wrong_shape,
    "times_10": lambda value: 10 * value,
    "exp": jnp.exp,
}


def build(spec):
    """Builds the head that `{"class", "arguments"}` describes."""
    arguments = dict(spec["arguments"])
    for name in ("loss_fn", "inverse_link_fn"):
        if name in arguments:
            arguments[name] = FUNCTIONS[arguments[name]]
    if "heads" in arguments:
        arguments["heads"] = [build(head) for head in arguments["heads"]]
    if "static_head" in arguments:
        arguments["static_head"] = build(arguments["static_head"])
    return getattr(eh, spec["class"])(**arguments)


def arrays(value):
    """Converts JSON lists to arrays, and sparse labels to one list of labels per example."""
    if isinstance(value, dict) and "sparse_indices" in value:
        rows = np.empty(value["dense_shape"][0], object)
        for row in range(len(rows)):
            rows[row] = []
        for (row, _), label in zip(value["sparse_indices"], value["values"], strict=True):
            rows[row].append(label)
        return rows
    if isinstance(value, dict):
        return {key: arrays(item) for key, item in value.items()}
    if value is None:
        return None
    array = np.array(value)
    return array.astype(np.float32) if array.dtype == np.float64 else array


def with_names(head, predictions):
    """The predictions on the host with class names. The two parts of a MultiHead's keys are joined by "/"."""
    fetched = apply_transforms(head.prediction_transforms(), jax.device_get(dict(predictions)))
    return {"/".join(key) if isinstance(key, tuple) else key: value for key, value in fetched.items()}
