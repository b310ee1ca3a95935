"""Start of a process: `import estimator_core`, and the first training step, cold and warm.

    uv run python benchmarks/start_up.py [--rounds 15] [--json FILE]

Cold: the cache of compiled programs is empty. Warm: another process has filled it. Both use the files and the bytecode
of earlier processes.

Each sample is a separate process: the time until its first step is done, which it prints, and the time until it has
ended. The bare script imports jax and optax, uses the same directory of compiled programs, and trains the MLP of
`mlp.py` for one step. So does the Estimator, with its default hooks.
"""

from __future__ import annotations

import argparse
import itertools
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from _report import report, write
from _side_by_side import Comparison, compare, compared

WIDTHS, BATCH = (64, 128, 128, 10), 32
STARTS = {"bare script": "bare", "estimator": "ours", "estimator, no hooks": "ours_without_hooks"}


def network(variables: dict[str, Any], x: Any) -> Any:
    """Returns the logits of the network of `mlp.py`."""
    import jax

    for index in range(len(WIDTHS) - 1):
        x = x @ variables[f"kernel_{index}"] + variables[f"bias_{index}"]
        x = jax.nn.relu(x) if index < len(WIDTHS) - 2 else x
    return x


def batch() -> tuple[np.ndarray, np.ndarray]:
    """Returns one batch."""
    generator = np.random.default_rng(0)
    return generator.normal(size=(BATCH, WIDTHS[0])).astype(np.float32), generator.integers(0, 10, BATCH).astype("i4")


def shapes() -> dict[str, tuple[int, ...]]:
    """Returns the shapes of the variables."""
    layers = list(itertools.pairwise(WIDTHS))
    found: dict[str, tuple[int, ...]] = {f"kernel_{index}": shape for index, shape in enumerate(layers)}
    return found | {f"bias_{index}": (columns,) for index, (_, columns) in enumerate(layers)}


def bare(cache: str) -> None:
    """Runs the script without a framework."""
    import jax
    import optax

    jax.config.update("jax_compilation_cache_dir", cache)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
    optimizer = optax.adam(1e-3)

    @jax.jit
    def init() -> Any:
        make = jax.nn.initializers.glorot_uniform()
        return {
            name: make(jax.random.key(index), shape) if len(shape) == 2 else jax.numpy.zeros(shape)
            for index, (name, shape) in enumerate(shapes().items())
        }

    def step(variables: Any, slots: Any, x: Any, y: Any) -> Any:
        def loss_of(values: Any) -> Any:
            return optax.softmax_cross_entropy_with_integer_labels(network(values, x), y).mean()

        loss, gradients = jax.value_and_grad(loss_of)(variables)
        updates, slots = optimizer.update(gradients, slots, variables)
        return optax.apply_updates(variables, updates), slots, loss

    variables = init()
    slots = jax.jit(optimizer.init)(variables)
    jax.block_until_ready(jax.jit(step, donate_argnums=(0, 1))(variables, slots, *batch()))
    print(time.time())


def ours(cache: str, **config: Any) -> None:
    """Runs the Estimator."""
    import optax

    import estimator_core as ec

    def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
        logits = network({name: ec.get_variable(name, shape) for name, shape in shapes().items()}, features)
        loss = optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()
        return ec.EstimatorSpec(mode, loss=loss, train_op=optax.adam(1e-3), predictions=logits)

    class FirstStep(ec.Hook):
        """Runs after the Estimator's own hooks."""

        def after_step(self, run: Any, step: int, out: Any) -> None:
            float(out["loss"])
            print(time.time())

    settings: dict[str, Any] = {"save_checkpoints_steps": None, "save_checkpoints_secs": None, **config}
    with tempfile.TemporaryDirectory() as model_dir:
        run_config = ec.RunConfig(model_dir=model_dir, tf_random_seed=1, compile_cache=cache, **settings)
        estimator = ec.Estimator(model_fn, config=run_config)
        estimator.train(lambda: [batch()], hooks=[FirstStep()], steps=1)


def ours_without_hooks(cache: str) -> None:
    """Runs the Estimator without hooks and event files."""
    ours(cache, default_hooks=False, log_step_count_steps=None, save_summary_steps=None)


def process(*arguments: str) -> str:
    """Runs a process with these arguments, from start to end, and returns its output."""
    # The default of Python: the first process stores the bytecode of its imports.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    return subprocess.run(command, check=True, text=True, env=environment, **pipes).stdout


def measure_starts(rounds: int, cache: str | None) -> tuple[list[Comparison], list[Comparison]]:
    """Returns times from the start to the first step, and to the end of the process. `cache`: None for an empty one."""
    first: dict[str, list[float]] = {name: [] for name in STARTS}
    whole: dict[str, list[float]] = {name: [] for name in STARTS}
    order = np.random.default_rng(0)
    for index in range(rounds + 1):
        for name in order.permutation(list(STARTS)):
            with tempfile.TemporaryDirectory(prefix="bench-cache-") as empty:
                began = time.time()
                done = float(process(__file__, "--child", STARTS[name], "--cache", cache or empty))
                ended = time.time()
            if index:  # the first round fills the cache
                first[name].append(done - began)
                whole[name].append(ended - began)
    names = [name for name in STARTS if name != "bare script"]
    to_first, to_end = ([compared(times, name, "bare script") for name in names] for times in (first, whole))
    return to_first, to_end


def void(_: Any) -> None:
    """Does nothing."""


def main() -> None:
    """Runs the comparison."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--child", choices=list(STARTS.values()), help=argparse.SUPPRESS)
    parser.add_argument("--cache", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        globals()[args.child](args.cache)
        return
    code = {name: name for name in ("import estimator_core", "import jax")} | {"interpreter": "pass"}
    imports = {name: (lambda line=line: void(process("-c", line))) for name, line in code.items()}
    results = compare(imports, reference="interpreter", rounds=args.rounds)
    cold_starts, cold_processes = measure_starts(args.rounds, None)
    with tempfile.TemporaryDirectory(prefix="bench-cache-") as cache:
        warm_starts, warm_processes = measure_starts(args.rounds, cache)
    beyond = (results[0].median - results[0].reference_median) * 1e3
    note = f"import estimator_core: {beyond:.1f} ms beyond the interpreter (target: at most 60)"
    targets = {("estimator", "bare script"): 0.77}
    write(
        args.json,
        report("Import", results, steps=1, unit=("ms", 1e3), notes=[note]),
        report("Cold start to the first step, cache of programs empty", cold_starts, steps=1, unit=("ms", 1e3)),
        report("Warm start to the first step, cache filled", warm_starts, steps=1, unit=("ms", 1e3), targets=targets),
        report("Cold process of one step, from start to end", cold_processes, steps=1, unit=("ms", 1e3)),
        report("Warm process of one step, from start to end", warm_processes, steps=1, unit=("ms", 1e3)),
    )


if __name__ == "__main__":
    main()
