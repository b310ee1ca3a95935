"""3,000 training steps with ten evaluations of ten batches: MLP 64-128-128-10, batch 32, five metrics.

    uv run python benchmarks/train_and_evaluate.py [--rounds 15] [--steps 3000] [--tf-python PYTHON] [--json FILE]

Each round continues the previous one by this number of steps. The Estimator writes two event files and a checkpoint at
the end of each round. In a second form, it writes a checkpoint at each evaluation, as tf.estimator always does. The
hand-written loops write nothing. In other forms, they save with orbax: once, and wait until the checkpoint is durable,
as the Estimator does, or at each evaluation.
"""

from __future__ import annotations

import argparse
import itertools
import shutil
import tempfile
import uuid
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from _mlp_model import arrays, loss_of, model_fn, values_of
from _peers import tf_estimator
from _report import report, write
from _side_by_side import compare
from mlp import BATCH, FreshBatches, initial_variables, logits_of
from mlp import batches as fresh_batches

import estimator_core as ec

EVALUATIONS, EVAL_BATCHES = 10, 10


class NamedBatches(FreshBatches):
    """The batches of `mlp.py` as a dict of features."""

    def __next__(self) -> Any:
        x, y = super().__next__()
        return {"x": x}, y


def nothing(state: Any) -> None:
    """Saves nothing."""


def hand_written(
    steps: int, save: Callable[[Any], None] = nothing, at_end: Callable[[Any], None] = nothing
) -> Callable[[], None]:
    """Returns a loop with donated state. It reads each evaluation at its end, nothing else, and then runs `save`. After
    the last one, it runs `at_end`.
    """
    optimizer = optax.adam(1e-3)

    def step(variables: Any, slots: Any, x: Any, y: Any) -> Any:
        loss, gradients = jax.value_and_grad(lambda values: loss_of(logits_of(values, x), y))(variables)
        updates, slots = optimizer.update(gradients, slots, variables)
        return optax.apply_updates(variables, updates), slots, loss

    @jax.jit
    def add(sums: Any, variables: Any, x: Any, y: Any) -> Any:
        logits = logits_of(variables, x)
        new = {name: value.sum() for name, value in values_of(y, logits).items()}
        return jax.tree.map(jnp.add, sums, {**new, "loss": loss_of(logits, y)})

    compiled = jax.jit(step, donate_argnums=(0, 1))
    variables = initial_variables()
    live = {"variables": variables, "slots": jax.jit(optimizer.init)(variables)}
    held_out, labels = arrays(EVAL_BATCHES * BATCH)
    names = ["accuracy", "top_3", "brier", "confidence", "entropy", "loss"]

    def run() -> None:
        variables, slots = live["variables"], live["slots"]
        source = fresh_batches(1)
        for _ in range(EVALUATIONS):
            for _ in range(steps // EVALUATIONS):
                variables, slots, _ = compiled(variables, slots, *next(source))
            sums: Any = dict.fromkeys(names, np.float32(0))
            for start in range(0, EVAL_BATCHES * BATCH, BATCH):
                rows = slice(start, start + BATCH)
                sums = add(sums, variables, held_out["x"][rows], labels[rows])
            jax.device_get(sums)
            save({"variables": variables, "slots": slots})
        at_end({"variables": variables, "slots": slots})
        live.update(variables=variables, slots=slots)

    return run


def orbax_save(*, durable: bool = False) -> Callable[[Any], None]:
    """Returns a function that saves with orbax's own asynchronous checkpointer. The newest five checkpoints stay.

    Args:
        durable: whether the function returns when the checkpoint is complete.
    """
    import orbax.checkpoint as ocp

    checkpointer = ocp.AsyncCheckpointer(ocp.StandardCheckpointHandler())
    directory = Path(tempfile.mkdtemp(prefix="bench-tae-orbax-"))
    kept: deque[Path] = deque()

    def save(state: Any) -> None:
        path = directory / uuid.uuid4().hex
        checkpointer.save(path, args=ocp.args.StandardSave(state))
        if durable:
            checkpointer.wait_until_finished()
        kept.append(path)
        if len(kept) > 5:
            shutil.rmtree(kept.popleft())

    return save


def estimator_run(steps: int, *, saves: int, **config: Any) -> Callable[[], None]:
    """Returns `train_and_evaluate` of one Estimator, with this number of checkpoints per round."""
    estimator = ec.Estimator(
        model_fn,
        config=ec.RunConfig(
            model_dir=tempfile.mkdtemp(prefix="bench-tae-"),
            tf_random_seed=1,
            save_checkpoints_steps=steps // saves,
            **config,
        ),
    )
    x, y = arrays(EVAL_BATCHES * BATCH)
    held_out = ec.inputs.numpy_input_fn(x, y, batch_size=BATCH, shuffle=False)
    done = itertools.count(steps, steps)

    def run() -> None:
        train = ec.TrainSpec(NamedBatches, max_steps=next(done))
        spec = ec.EvalSpec(held_out, steps=EVAL_BATCHES, every_steps=steps // EVALUATIONS)
        ec.train_and_evaluate(estimator, train, spec)

    return run


def main() -> None:
    """Runs the comparison."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--tf-rounds", type=int, default=5, help="of the comparison with tf.estimator")
    parser.add_argument("--tf-python")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    saving, saved_once = "estimator, ten checkpoints", "hand-written loops, one orbax save"
    ours = {"estimator": estimator_run(args.steps, saves=1), saving: estimator_run(args.steps, saves=EVALUATIONS)}
    contestants = {
        "hand-written loops": hand_written(args.steps),
        saved_once: hand_written(args.steps, at_end=orbax_save(durable=True)),
        "hand-written loops, orbax saves": hand_written(args.steps, orbax_save()),
        **ours,
        'estimator, "auto"': estimator_run(args.steps, saves=1, steps_per_dispatch="auto"),
    }
    pairs = [("estimator", saved_once), (saving, "hand-written loops, orbax saves")]
    results = compare(contestants, reference="hand-written loops", rounds=args.rounds, pairs=pairs)
    title = "train_and_evaluate, ten evaluations of ten batches"
    targets = {(name, "hand-written loops"): 0.87 for name in ("estimator", 'estimator, "auto"')}
    tables = [report(title, results, steps=args.steps, targets=targets)]
    numbers = {"steps": args.steps, "evaluations": EVALUATIONS, "batches": EVAL_BATCHES}
    peers = tf_estimator(args.tf_python, "train_and_evaluate", **numbers)
    if peers:
        results = compare(ours | peers, reference="tf.estimator", rounds=args.tf_rounds)
        targets = {("estimator", "tf.estimator"): 8.0}
        tables.append(report(f"{title}, beside tf.estimator", results, steps=args.steps, targets=targets))
    write(args.json, *tables)


if __name__ == "__main__":
    main()
