"""A small training in a separate process: `python small_run.py MODEL_DIR STEPS [WHERE NUMBER SIGNAL]`.

With WHERE, the process receives the signal at the start of the NUMBERth call of one of its functions.
"""

import os
import signal
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

import estimator_core as ec
from estimator_core._checkpoint import commit, journal_shelf
from estimator_core._journal import writer
from estimator_core._loop import eval_results, train_call
from estimator_core._storage.local import LocalStorage

#: The places where a signal can arrive: the owner of a function, and the name of the function.
WHERE = {
    "record": (LocalStorage, "put_new"),
    "recorded": (writer, "refresh"),
    "name": (journal_shelf.JournalShelf, "_name"),
    "delete": (journal_shelf.JournalShelf, "_delete"),
    "arrays": (commit.orbax_io, "write_arrays"),
    "evaluation": (eval_results, "write_results"),
    "line": (eval_results, "append_line"),
    "trim": (train_call, "trim_event_files"),
    "views": (train_call, "write_results_files"),
}
X = np.linspace(0, 1, 96, dtype=np.float32).reshape(32, 3)


def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
    y = features["x"] @ ec.get_variable("w", (3,), jax.nn.initializers.normal())
    if mode == ec.ModeKeys.PREDICT:
        return ec.EstimatorSpec(mode, predictions={"y": y})
    return ec.EstimatorSpec(mode, loss=jnp.mean((y - labels) ** 2), train_op=optax.sgd(0.01))


def batches(epochs: int | None) -> Any:
    return ec.inputs.numpy_input_fn({"x": X}, X[:, 0], batch_size=8, num_epochs=epochs, shuffle=False)


def estimator_of(model_dir: str, **config: Any) -> ec.Estimator:
    settings = {
        "save_checkpoints_steps": 5,
        "keep_checkpoint_max": 2,
        "save_summary_steps": 1,
        "log_step_count_steps": 5,
        "tf_random_seed": 1,
        "steps_per_dispatch": 1,
        **config,
    }
    return ec.Estimator(model_fn, config=ec.RunConfig(model_dir=model_dir, **settings))


def train(model_dir: str, steps: int, **config: Any) -> ec.Estimator:
    """Trains with an evaluation at each checkpoint and one between checkpoints."""
    estimator = estimator_of(model_dir, **config)
    ec.train_and_evaluate(
        estimator,
        ec.TrainSpec(batches(None), max_steps=steps),
        [ec.EvalSpec(batches(1), throttle_secs=0), ec.EvalSpec(batches(1), name="often", every_steps=2)],
    )
    return estimator


def signal_at(where: str, number: int, which: int) -> None:
    """Sends this process a signal at the number-th call of a function."""
    owner, name = WHERE[where]
    real, calls = getattr(owner, name), [0]

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        calls[0] += 1
        if calls[0] == number:
            print("now", flush=True)
            os.kill(os.getpid(), which)
        return real(*args, **kwargs)

    setattr(owner, name, wrapped)


if __name__ == "__main__":
    if len(sys.argv) > 3:
        signal_at(sys.argv[3], int(sys.argv[4]), getattr(signal, sys.argv[5]))
    train(sys.argv[1], int(sys.argv[2]))
