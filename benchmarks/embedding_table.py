"""The cost of a step by the rows of an embedding table, on one device and split over eight of a CPU.

    uv run python benchmarks/embedding_table.py [--rows 20000 20000000] [--devices 1 8] [--rounds 15] [--json FILE]

Each measurement is a process of its own; small and large tables, on one device and on several, in random order.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from _report import report, write
from _side_by_side import compared

BATCH, STEPS, WARM = 1024, 220, 60


def measure(rows: int, devices: int) -> float:
    """The median seconds of a step."""
    import estimator_canned_tabular as tab
    import estimator_core as ec

    class Times(ec.Hook):
        def begin(self, run):
            self.times = []
            run.fetch("loss")

        def after_step(self, run, step, out):
            float(out["loss"])
            self.times.append(time.perf_counter())

    rng = np.random.default_rng(0)
    batches = [
        (
            {"id": rng.integers(0, rows, (BATCH, 1)), "x": rng.normal(size=(BATCH, 8)).astype(np.float32)},
            rng.integers(0, 2, (BATCH, 1)),
        )
        for _ in range(20)
    ]
    split = {"mesh": {"data": devices}, "partition_rules": [(".*/embedding_weights", ("data", None))]}
    config = ec.RunConfig(
        default_hooks=False, save_checkpoints_steps=None, tf_random_seed=1, **(split if devices > 1 else {})
    )
    table = tab.embedding_column(tab.categorical_column_with_identity("id", rows), 16)
    times = Times()
    estimator = tab.DNNClassifier([32], [table, tab.numeric_column("x", 8)], config=config)
    estimator.train(lambda: (batches[step % 20] for step in range(STEPS)), hooks=[times])
    return float(np.median(np.diff(times.times)[WARM:]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs=2, default=[20_000, 20_000_000])
    parser.add_argument("--devices", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--measure", type=int, nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    if args.measure:
        print(measure(*args.measure))
        return
    cases = {name_of(rows, devices): (rows, devices) for devices in args.devices for rows in args.rows}
    seconds: dict[str, list[float]] = {name: [] for name in cases}
    order = np.random.default_rng(0)
    for _ in range(args.rounds):
        for name in order.permutation(list(cases)):
            seconds[name].append(in_a_process(*cases[name]))
    small, large = args.rows
    pairs = [(name_of(large, devices), name_of(small, devices)) for devices in args.devices]
    results = [compared(seconds, *pair, smaller_is_better=True) for pair in pairs]
    title = "Time of a step with a large embedding table / with a small one"
    write(args.json, report(title, results, steps=1, targets=dict.fromkeys(pairs, 1.3)))


def name_of(rows: int, devices: int) -> str:
    return f"{rows:,} rows, {devices} device" + "s" * (devices > 1)


def in_a_process(rows: int, devices: int) -> float:
    """The median seconds of a step, measured by a process that has so many devices."""
    flags = f"--xla_force_host_platform_device_count={devices}"
    env = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags}
    command = [sys.executable, __file__, "--measure", str(rows), str(devices)]
    output = subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout
    return float(output.splitlines()[-1])


if __name__ == "__main__":
    main()
