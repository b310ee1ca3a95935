"""A deep network of many variables with many hooks and metrics: tracing, lowering, compiling and a step, beside a loop.

    uv run python benchmarks/large_model.py [--variables 1000] [--hooks 50] [--metrics 100] [--steps 50] [--rounds 9]
        [--json FILE]

A layer is a matrix of 4 x 4 and a bias. The hooks read the loss every ten steps, and so does the hand-written loop. The
evaluation computes the mean of each metric over its batches. Each round starts both sides as separate processes, in
random order, without stored programs. jax reports how long it traced, lowered and compiled. The third call of `train`
and of `evaluate` is timed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from _report import report, write
from _side_by_side import compared

OURS, BY_HAND = "estimator", "loop by hand"
BATCH, WIDTH = 32, 4
#: The quantities that jax itself measures, by the end of their name in jax.
PARTS = {
    "trace": "jaxpr_trace_duration",
    "lower": "jaxpr_to_mlir_module_duration",
    "compile": "backend_compile_duration",
}
Calls = tuple[Callable[[], object], Callable[[], object]]


def layers(value: Callable[[str, tuple[int, ...]], Any], count: int, x: Any) -> Any:
    """Returns the output of the network: matrices and biases in turn, with this total number of variables."""
    import jax.numpy as jnp

    for index in range(0, count, 2):
        x = jnp.tanh(x @ value(f"kernel_{index}", (WIDTH, WIDTH)) + value(f"bias_{index}", (WIDTH,)))
    return x.mean(axis=1)


def batches(steps: int) -> Iterator[Any]:
    """Yields the same batch again and again."""
    x, y = np.ones((BATCH, WIDTH), np.float32), np.zeros(BATCH, np.float32)
    return (({"x": x}, y) for _ in range(steps))


def estimator(args: argparse.Namespace) -> Calls:
    """Returns the Estimator: a call of train, and one of evaluate."""
    import optax
    from growth import Looks, estimator

    import estimator_core as ec

    def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
        outputs = layers(ec.get_variable, args.variables, features["x"])
        errors = (outputs - labels) ** 2
        return ec.EstimatorSpec(
            mode,
            loss=errors.mean(),
            train_op=optax.adam(1e-3),
            predictions=outputs,
            # Metrics of TRAIN would be outputs of each step.
            eval_metric_ops=means_of(errors) if mode == ec.ModeKeys.EVAL else None,
        )

    def means_of(errors: Any) -> dict[str, Any]:
        return {f"m{index}": ec.metrics.mean(errors + index) for index in range(args.metrics)}

    trained = estimator(model_fn)
    hooks = [Looks() for _ in range(args.hooks)]

    def train() -> None:
        trained.train(lambda: batches(args.steps), hooks=hooks)
        trained.get_variable_value("bias_0")  # waits for the last step

    return train, lambda: trained.evaluate(lambda: batches(args.steps))


def by_hand(args: argparse.Namespace) -> Calls:
    """Returns jitted functions in loops: the same step, and the same means."""
    import jax
    import jax.numpy as jnp
    import optax

    optimizer = optax.adam(1e-3)
    found: dict[str, Any] = {}

    def declare(name: str, shape: tuple[int, ...]) -> Any:
        return found.setdefault(name, jnp.asarray(np.random.default_rng(0).normal(size=shape).astype(np.float32)))

    layers(declare, args.variables, jnp.ones((1, WIDTH)))

    def errors_of(variables: Any, x: Any, y: Any) -> Any:
        return (layers(lambda name, shape: variables[name], args.variables, x) - y) ** 2

    def step(state: Any, x: Any, y: Any) -> Any:
        variables, slots = state
        loss, gradients = jax.value_and_grad(lambda given: errors_of(given, x, y).mean())(variables)
        updates, slots = optimizer.update(gradients, slots, variables)
        return (optax.apply_updates(variables, updates), slots), loss

    def totals_of(variables: Any, totals: Any, x: Any, y: Any) -> Any:
        errors = errors_of(variables, x, y)
        return [(total + (errors + index).sum(), count + errors.size) for index, (total, count) in enumerate(totals)]

    compiled, summed = jax.jit(step, donate_argnums=0), jax.jit(totals_of, donate_argnums=1)
    state = [(found, jax.jit(optimizer.init)(found))]

    def train() -> None:
        for number, (features, labels) in enumerate(batches(args.steps), start=1):
            state[0], loss = compiled(state[0], features["x"], labels)
            if number % 10 == 0:
                for _ in range(args.hooks):
                    float(loss)
        jax.block_until_ready(state[0])

    def evaluate() -> None:
        totals = [(jnp.zeros(()), jnp.zeros(())) for _ in range(args.metrics)]
        for features, labels in batches(args.steps):
            totals = summed(state[0][0], totals, features["x"], labels)
        for total, count in totals:
            float(total / count)

    return train, evaluate


SIDES: dict[str, Callable[[argparse.Namespace], Calls]] = {OURS: estimator, BY_HAND: by_hand}


def measure(args: argparse.Namespace) -> dict[str, float]:
    """Returns the seconds by part, of one side in this process."""
    import jax

    parts = dict.fromkeys(PARTS, 0.0)

    def heard(event: str, seconds: float, **_: Any) -> None:
        for part, name in PARTS.items():
            if event.endswith(name):
                parts[part] += seconds

    jax.monitoring.register_event_duration_secs_listener(heard)
    seconds: dict[str, float] = {}
    train, evaluate = SIDES[args.side](args)
    for name, call in (("train", train), ("evaluate", evaluate)):
        began = time.perf_counter()
        call()
        seconds[f"first {name}"] = time.perf_counter() - began
        call()  # several steps at once compile in the second call at the earliest
        began = time.perf_counter()
        call()
        seconds[name] = time.perf_counter() - began
    return parts | seconds


def child(side: str, args: argparse.Namespace) -> dict[str, float]:
    """Returns the seconds of a separate process."""
    numbers = [f"--{name}={getattr(args, name)}" for name in ("variables", "hooks", "metrics", "steps")]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JAX_COMPILATION")}
    with tempfile.TemporaryDirectory(prefix="bench-large-") as place:
        done = subprocess.run(
            [sys.executable, __file__, "--side", side, *numbers],
            env={**environment, "PYTHONPATH": str(Path(__file__).parent), "XDG_CACHE_HOME": place},
            stdout=subprocess.PIPE,
            check=True,
            text=True,
        )
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """Runs the comparison."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--variables", type=int, default=1000)
    parser.add_argument("--hooks", type=int, default=50)
    parser.add_argument("--metrics", type=int, default=100)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--side", choices=list(SIDES), help=argparse.SUPPRESS)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    if args.side:
        print(json.dumps(measure(args)))
        return
    seconds: dict[str, list[dict[str, float]]] = {side: [] for side in SIDES}
    order = np.random.default_rng(0)
    for _ in range(args.rounds):
        for side in order.permutation(list(SIDES)):
            seconds[side].append(child(side, args))
    size = f"{args.variables} variables, {args.hooks} hooks, {args.metrics} metrics"
    tables: list[Any] = []
    for part in seconds[OURS][0]:
        by_side = {side: [one[part] for one in measured] for side, measured in seconds.items()}
        of_steps = part in ("train", "evaluate")
        unit = ("ms/step", 1e3 / args.steps) if of_steps else ("s", 1.0)
        steps = args.steps if of_steps else 1
        tables.append(report(f"{size}: {part}", [compared(by_side, OURS, BY_HAND)], steps=steps, unit=unit))
    write(args.json, *tables)


if __name__ == "__main__":
    main()
