"""The network and the data of `sweep.py` and `folds.py`, for all of their sides."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

import estimator_core as ec

WIDTHS, BATCH, ROWS, HELD_OUT = (64, 128, 10), 64, 1500, 297


def data() -> tuple[np.ndarray, np.ndarray]:
    """Returns ten clouds of 64 numbers, with as many rows as the digits of scikit-learn."""
    generator = np.random.default_rng(0)
    labels = generator.integers(0, WIDTHS[-1], ROWS + HELD_OUT).astype(np.int32)
    centres = generator.normal(size=(WIDTHS[-1], WIDTHS[0]))
    x = centres[labels] + 3 * generator.normal(size=(ROWS + HELD_OUT, WIDTHS[0]))
    return x.astype(np.float32), labels


class Batches:
    """Yields shuffled batches of the training rows, the same at each iteration, or the held-out rows, once."""

    def __init__(self, training: bool) -> None:
        self._training = training
        self._x, self._y = data()

    def __iter__(self) -> Iterator[tuple[dict[str, np.ndarray], np.ndarray]]:
        if not self._training:
            yield {"x": self._x[ROWS:]}, self._y[ROWS:]
            return
        generator = np.random.default_rng(1)
        while True:
            order = generator.permutation(ROWS)
            for start in range(0, ROWS - BATCH + 1, BATCH):
                rows = order[start : start + BATCH]
                yield {"x": self._x[rows]}, self._y[rows]


def batches(training: bool) -> Callable[[], Batches]:
    """Returns an input of the Estimator."""
    return lambda: Batches(training)


def rows() -> Callable[..., Any]:
    """Returns all rows once, in batches, for folds."""
    x, labels = data()
    return ec.inputs.numpy_input_fn({"x": x}, labels, batch_size=BATCH, num_epochs=1, shuffle=False)


def initial() -> dict[str, np.ndarray]:
    """Returns the initial values, which are the same on both sides."""
    generator = np.random.default_rng(2)
    found: dict[str, np.ndarray] = {}
    for index, (rows, columns) in enumerate(itertools.pairwise(WIDTHS)):
        found[f"kernel_{index}"] = (generator.normal(size=(rows, columns)) / rows**0.5).astype(np.float32)
        found[f"bias_{index}"] = np.zeros(columns, np.float32)
    return found


def logits_of(variables: Any, x: Any) -> Any:
    """Returns the logits of the network."""
    hidden = jax.nn.relu(x @ variables["kernel_0"] + variables["bias_0"])
    return hidden @ variables["kernel_1"] + variables["bias_1"]


def loss_of(variables: Any, x: Any, labels: Any) -> Any:
    """Returns the mean cross entropy."""
    return optax.softmax_cross_entropy_with_integer_labels(logits_of(variables, x), labels).mean()


def model_fn(features: Any, labels: Any, mode: str, params: Any) -> ec.EstimatorSpec:
    """Defines the network in all modes."""
    variables = {
        name: ec.get_variable(name, value.shape, initializer=lambda key, shape, dtype, value=value: jnp.asarray(value))
        for name, value in initial().items()
    }
    logits = logits_of(variables, features["x"])
    if mode == ec.ModeKeys.PREDICT:
        return ec.EstimatorSpec(mode, predictions=logits)
    # Fixed values stay constants of the step, as in optax.adam, so both sides compute the same bits.
    adam = optax.inject_hyperparams(optax.adam, static_args=("b1", "b2", "eps", "eps_root"))
    return ec.EstimatorSpec(
        mode,
        loss=optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean(),
        train_op=adam(learning_rate=params.rate),
        eval_metric_ops={"accuracy": ec.metrics.mean(jnp.argmax(logits, axis=1) == labels)},
    )
