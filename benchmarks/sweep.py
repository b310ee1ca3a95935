"""A sweep against Optuna's own example of a hand-written JAX loop, with the same trials.

    uv run python benchmarks/sweep.py [--trials 20] [--steps 1000] [--rounds 5] [--json FILE]

The hand-written loop follows the examples of Optuna: `study.optimize` calls an objective, which jits a step, loops over
batches, reports the accuracy at two steps, and returns it. It writes nothing. The sweep is a configuration file. It
leaves a model_dir for each trial, with checkpoints and evaluations. Optuna samples the trials of the sweep. The
hand-written loop receives these trials, so both run the same ones and compute the same bits. It compiles each trial, as
in the examples. For orientation, it also runs with the compile cache of the sweep. A first sweep and a first loop fill
the cache and do not count.
"""

from __future__ import annotations

import argparse
import logging
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import optuna
from _report import report, write
from _side_by_side import compared
from _sweep_code import Batches, initial, logits_of, loss_of
from jax.experimental.compilation_cache import compilation_cache
from population import seconds

from estimator_runs import open_search, run_search

FILE = """
model = {{ function = "{code}:model_fn" }}
inputs.train = {{ call = "{code}:batches", args = {{ training = true }} }}
inputs.eval = {{ call = "{code}:batches", args = {{ training = false }} }}
train.max_steps = {steps}
hparams.rate = 0.001
run_config.tf_random_seed = 1

[sweep]
trials = {trials}
seed = 1
every_steps = {half}
objectives = [{{ metric = "accuracy", mode = "max" }}]
space = {{ "hparams.rate" = {{ low = 1e-5, high = 1e-1, log = true }} }}
"""
Trials = list[tuple[float, float]]


def by_file(trials: int, steps: int) -> Trials:
    """Returns rates and accuracies of a sweep."""
    code = Path(__file__).with_name("_sweep_code.py")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "sweep.toml")
        path.write_text(FILE.format(code=code, trials=trials, steps=steps, half=steps // 2))
        search = open_search(path, Path(folder, "sweep"))
        run_search(search)
        found = search.shelf.study().get_trials()
        return [(one.params["hparams.rate"], float(one.values[0])) for one in found]


def by_hand(rates: list[float], steps: int, *, cached: bool = False) -> Trials:
    """Returns the same from a hand-written loop, and optionally with a compile cache."""

    def objective(trial: Any) -> float:
        optimizer = optax.adam(trial.suggest_float("rate", 1e-5, 1e-1, log=True))

        @jax.jit
        def update(variables: Any, slots: Any, x: Any, labels: Any) -> Any:
            loss, gradients = jax.value_and_grad(loss_of)(variables, x, labels)
            updates, slots = optimizer.update(gradients, slots, variables)
            return optax.apply_updates(variables, updates), slots, loss

        @jax.jit
        def right(variables: Any, x: Any, labels: Any) -> Any:
            return jnp.mean(jnp.argmax(logits_of(variables, x), axis=1) == labels)

        variables: Any = {name: jnp.asarray(value) for name, value in initial().items()}
        slots: Any = optimizer.init(variables)
        (held,) = Batches(training=False)
        accuracy = 0.0
        for step, (features, labels) in enumerate(Batches(training=True), 1):
            variables, slots, _ = update(variables, slots, features["x"], labels)
            if step in (steps // 2, steps):
                accuracy = float(right(variables, held[0]["x"], held[1]))
                trial.report(accuracy, step)
            if step == steps:
                break
        return accuracy

    study = optuna.create_study(direction="maximize")
    for rate in rates:
        study.enqueue_trial({"rate": rate})
    _use_cache(cached)
    study.optimize(objective, n_trials=len(rates))
    _use_cache(True)
    return [(one.params["rate"], float(one.values[0])) for one in study.get_trials()]


def _use_cache(used: bool) -> None:
    jax.config.update("jax_enable_compilation_cache", used)
    compilation_cache.reset_cache()  # jax remembers the first answer


def main() -> None:
    """Runs it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    logging.getLogger("estimator_core").setLevel(logging.WARNING)
    mine = by_file(args.trials, args.steps)
    rates = [rate for rate, _ in mine]
    its = by_hand(rates, args.steps, cached=True)
    names = "estimator sweep", "Optuna with a loop by hand"
    sides: dict[str, Callable[[], object]] = {
        names[0]: lambda: by_file(args.trials, args.steps),
        names[1]: lambda: by_hand(rates, args.steps),
        f"{names[1]}, cached": lambda: by_hand(rates, args.steps, cached=True),
    }
    wall: dict[str, list[float]] = {name: [] for name in sides}
    processors: dict[str, list[float]] = {name: [] for name in sides}
    order = np.random.default_rng(0)
    for _ in range(args.rounds):
        for name in order.permutation(list(sides)):
            passed = seconds(sides[name])
            wall[name].append(passed[0])
            processors[name].append(passed[1])
    found = [
        replace(compared(told, names[0], other, smaller_is_better=True), name=f"{names[0]}{what}")
        for told, what in ((wall, ""), (processors, ", time of processors"))
        for other in list(sides)[1:]
    ]
    same = [rate for rate, _ in its] == rates
    worst = float(np.max(np.abs(np.array(mine)[:, 1] - np.array(its)[:, 1])))
    note = f"the same {len(rates)} rates: {same}; largest difference of an accuracy: {worst:.4f}"
    title = f"A sweep of {args.trials} trials of {args.steps} steps"
    write(args.json, report(title, found, steps=args.trials * args.steps, targets={names: 1.05}, notes=[note]))


if __name__ == "__main__":
    main()
