"""Cost of hooks: ten hooks that each read a value and write it every 100 steps, against the same loop without hooks.

    uv run python benchmarks/hooks_cost.py [--rounds 60] [--steps 1000] [--json FILE]

The model and its input are the same as in `mlp.py`. A tenth of the rounds measures, for orientation: several steps per
dispatch, the hooks of every run, and progress. It also counts the steps that hooks miss with 50 steps per dispatch.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import optax
from _finished import Finished
from _report import report, write
from _side_by_side import Comparison, compare, compared
from mlp import FreshBatches, initial_variables, logits_of

import estimator_core as ec
from estimator_hooks import ProgressBarHook

EVERY, HOOKS = 100, 10


class WritesOneValue(ec.Hook):
    """Reads one output every 100 steps and writes it to the event file. With a `block`, in every other block."""

    def __init__(self, name: str, tag: str, block: int | None = None) -> None:
        self._name, self._tag, self._block = name, tag, block
        self.steps: list[int] = []

    def begin(self, run: Any) -> None:
        self.steps = []

    def next_step(self, step: int) -> int:
        due = (step // EVERY + 1) * EVERY
        while self._block is not None and (due - 1) // self._block % 2 == 0:
            due += EVERY
        return due

    def after_step(self, run: Any, step: int, out: Any) -> None:
        run.summaries.scalar(self._tag, float(out[self._name]), step)
        self.steps.append(step)


def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
    """Defines the network of `mlp.py`, with ten scalars to observe."""
    variables = {name: ec.get_variable(name, value.shape) for name, value in initial_variables().items()}
    logits = logits_of(variables, features)
    for index in range(HOOKS):
        ec.summary.scalar(f"logit_{index}", logits[:, index].mean())
    loss = optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()
    return ec.EstimatorSpec(mode, loss=loss, train_op=optax.adam(1e-3))


def training(steps: int, make_hooks: Callable[[], list[Any]], **config: Any) -> Callable[[], None]:
    """Returns a warm Estimator without the hooks of core and packages, with one `train` call per round."""
    settings: dict[str, Any] = {
        "tf_random_seed": 1,
        "save_checkpoints_steps": None,
        "save_checkpoints_secs": None,
        "default_hooks": False,
        "log_step_count_steps": None,
        "save_summary_steps": None,
        **config,
    }
    estimator = ec.Estimator(
        model_fn, config=ec.RunConfig(model_dir=tempfile.mkdtemp(prefix="bench-hooks-"), **settings)
    )
    hooks = make_hooks()

    def run() -> None:
        estimator.train(FreshBatches, steps=steps, hooks=[*hooks, Finished()])

    return run


class LooksAtTheClock(ec.Hook):
    """Records the time at the end of every block of steps, when the device has finished them."""

    def __init__(self, block: int) -> None:
        self._block = block
        self.times: list[float] = []

    def next_step(self, step: int) -> int:
        return (step // self._block + 1) * self._block

    def after_step(self, run: Any, step: int, out: Any) -> None:
        jax.block_until_ready(out["loss"])
        self.times.append(time.perf_counter())


def within_one_call(blocks: int, block: int = 500) -> Comparison:
    """Compares ten hooks that sleep in every other block of one call: awake against asleep. A round is a pair of
    neighbouring blocks, which share the state of the machine better than separate calls.
    """
    clock = LooksAtTheClock(block)
    hooks = [*(WritesOneValue(f"logit_{index}", f"hook_{index}", block) for index in range(HOOKS)), clock]
    training(blocks * block, lambda: list(hooks))()
    seconds = np.diff(clock.times)[3:]  # blocks 4, 5, 6, ...: asleep if the number is even
    pairs = seconds[: len(seconds) // 2 * 2].reshape(-1, 2)
    measured = {"blocks without": pairs[:, 0] / block, "blocks with ten hooks": pairs[:, 1] / block}
    return compared({name: found.tolist() for name, found in measured.items()}, *reversed(measured))


def ten_hooks() -> list[Any]:
    """Returns ten hooks with one value each."""
    return [WritesOneValue(f"logit_{index}", f"hook_{index}") for index in range(HOOKS)]


def missed_steps(steps: int, k: int) -> int:
    """Returns the number of requested steps that ten hooks of different cadence do not see."""

    class Counts(WritesOneValue):
        def __init__(self, every: int) -> None:
            super().__init__("loss", f"every_{every}")
            self.every = every

        def next_step(self, step: int) -> int:
            return (step // self.every + 1) * self.every

    hooks = [Counts(every) for every in (7, 10, 33, 50, 64, 77, 100, 101, 150, 250)]
    training(steps, lambda: list(hooks), steps_per_dispatch=k)()
    return sum(len(set(range(hook.every, steps + 1, hook.every)) - set(hook.steps)) for hook in hooks)


def main() -> None:
    """Runs the comparison."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--blocks", type=int, default=200, help="of 500 steps, for the comparison within one call")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    within = within_one_call(args.blocks)
    with open("/dev/null", "w") as nowhere:
        asked = {
            "no hooks": training(args.steps, list),
            "ten hooks, every 100 steps": training(args.steps, ten_hooks),
        }
        results = compare(asked, reference="no hooks", rounds=args.rounds)
        others = {
            "no hooks": asked["no hooks"],
            "ten hooks, 50 steps a dispatch": training(args.steps, ten_hooks, steps_per_dispatch=50),
            "core's own hooks": training(args.steps, list, log_step_count_steps=100, save_summary_steps=100),
            "progress lines": training(args.steps, lambda: [ProgressBarHook(nowhere)]),
        }
        results += compare(others, reference="no hooks", rounds=max(5, args.rounds // 10))
    missed = f"steps missed by ten hooks with 50 steps a dispatch: {missed_steps(args.steps, 50)}"
    write(
        args.json,
        report("Hooks on the MLP 64-128-128-10, batch 32, Adam", results, steps=args.steps, notes=[missed]),
        report("Ten hooks within one call, pairs of neighbouring blocks", [within], steps=1),
    )


if __name__ == "__main__":
    main()
