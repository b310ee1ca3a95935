"""The cost of a step by the rows of an embedding table, on one device and split over eight of a CPU.

    uv run python benchmarks/embedding_table.py [--rows 20000 20000000] [--devices 1 8] [--rounds 15] [--json FILE]

Each measurement is a separate process: small and large tables, on one device and on several, in random order. On
several devices, the compiler splits the table by a partition rule, or devices exchange rows (`AllToAll`). For the first
number of devices, the small table also runs with ids that are admitted in training (`GrowingTable`).
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
RULE, EXCHANGE, GROWING = "rule", "exchange", "growing"


def measure(form: str, rows: int, devices: int) -> float:
    """Returns the median seconds of a step."""
    import estimator_canned_tabular as tab
    import estimator_core as ec
    from estimator_tables import AllToAll

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
    mesh = {"mesh": {"data": devices}} if devices > 1 else {}
    rule = {"partition_rules": [(".*/embedding_weights", ("data", None))]} if devices > 1 and form == RULE else {}
    config = ec.RunConfig(default_hooks=False, save_checkpoints_steps=None, tf_random_seed=1, **mesh, **rule)
    times = Times()
    if form == GROWING:
        estimator = with_growing_table(rows, config)
    else:
        access = AllToAll() if form == EXCHANGE else None
        table = tab.embedding_column(tab.categorical_column_with_identity("id", rows), 16, access=access)
        estimator = tab.DNNClassifier([32], [table, tab.numeric_column("x", 8)], config=config)
    estimator.train(lambda: (batches[step % 20] for step in range(STEPS)), hooks=[times])
    return float(np.median(np.diff(times.times)[WARM:]))


def with_growing_table(rows: int, config):
    """Returns the same network over a table of ids that are admitted at their second occurrence."""
    import jax
    import jax.numpy as jnp
    import optax

    import estimator_core as ec
    from estimator_tables import GrowingTable, WideIds

    table = GrowingTable(rows=rows // 16 * 24, columns=16, admit_at=2, max_age=1000)

    def model_fn(features, labels, mode):
        user = table.lookup("user", features["id"], mode)[:, 0]
        hidden = jnp.concatenate([user, features["x"]], axis=1) @ ec.get_variable("hidden", (24, 32))
        logits = jax.nn.relu(hidden) @ ec.get_variable("logits", (32, 1)) + ec.get_variable("bias", (1,))
        loss = optax.sigmoid_binary_cross_entropy(logits, labels).mean()
        return ec.EstimatorSpec(mode, loss=loss, train_op=optax.adagrad(0.05))

    return ec.Estimator(model_fn, config=config, host_transforms=[WideIds(["id"])])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs=2, default=[20_000, 20_000_000])
    parser.add_argument("--devices", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    if args.measure:
        form, *numbers = args.measure
        print(measure(form, *map(int, numbers)))
        return
    small, large = args.rows
    cases = [(RULE, rows, devices) for devices in args.devices for rows in args.rows]
    cases += [(EXCHANGE, rows, devices) for devices in args.devices if devices > 1 for rows in args.rows]
    cases.append((GROWING, small, args.devices[0]))
    seconds: dict[str, list[float]] = {name_of(*case): [] for case in cases}
    order = np.random.default_rng(0)
    for _ in range(args.rounds):
        for place in order.permutation(len(cases)):
            seconds[name_of(*cases[place])].append(in_a_process(*cases[place]))
    by_rows = [
        (name_of(form, large, devices), name_of(form, small, devices))
        for form, rows, devices in cases
        if form != GROWING and rows == small
    ]
    by_form = [
        (name_of(EXCHANGE, rows, devices), name_of(RULE, rows, devices))
        for form, rows, devices in cases
        if form == EXCHANGE
    ]
    by_form.append((name_of(GROWING, small, args.devices[0]), name_of(RULE, small, args.devices[0])))
    results = [compared(seconds, *pair, smaller_is_better=True) for pair in (*by_rows, *by_form)]
    title = "Time of a step with a large embedding table / with a small one, and of one form / of another"
    write(args.json, report(title, results, steps=1, targets=dict.fromkeys(by_rows, 1.3)))


def name_of(form: str, rows: int, devices: int) -> str:
    kind = {RULE: "", EXCHANGE: ", all-to-all", GROWING: ", growing"}[form]
    return f"{rows:,} rows, {devices} device" + "s" * (devices > 1) + kind


def in_a_process(form: str, rows: int, devices: int) -> float:
    """Returns the median seconds of a step, measured by a process with this number of devices."""
    flags = f"--xla_force_host_platform_device_count={devices}"
    env = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags}
    command = [sys.executable, __file__, "--measure", form, str(rows), str(devices)]
    output = subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout
    return float(output.splitlines()[-1])


if __name__ == "__main__":
    main()
