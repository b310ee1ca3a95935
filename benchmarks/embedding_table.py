"""The cost of a step by the rows of an embedding table, on one device and split over eight of a CPU.

    uv run python benchmarks/embedding_table.py [--rows 20000 20000000] [--devices 1 8] [--pairs 3]

Each measurement is a process of its own; small and large tables take turns. The target is a ratio of 1.3.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time

BATCH, STEPS, WARM = 1024, 220, 60


def measure(rows: int, devices: int) -> float:
    """The median milliseconds of a step."""
    import numpy as np

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
    return float(np.median(np.diff(times.times)[WARM:])) * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs=2, default=[20_000, 20_000_000])
    parser.add_argument("--devices", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--measure", type=int, nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        print(measure(*args.measure))
        return
    for devices in args.devices:
        flags = f"--xla_force_host_platform_device_count={devices}"
        env = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags}
        found: dict[int, list[float]] = {rows: [] for rows in args.rows}
        for rows in args.rows * args.pairs:
            command = [sys.executable, __file__, "--measure", str(rows), str(devices)]
            output = subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout
            found[rows].append(float(output.splitlines()[-1]))
        small, large = (statistics.median(found[rows]) for rows in args.rows)
        print(f"{devices} devices: {args.rows[0]} rows {small:.2f} ms, {args.rows[1]} rows {large:.2f} ms")
        print(f"{devices} devices: ratio {large / small:.2f}")


if __name__ == "__main__":
    main()
