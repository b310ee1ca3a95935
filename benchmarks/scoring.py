"""`estimator predict` on a Parquet file, and a hand-written jitted loop over pyarrow batches: rows/s and memory.

    uv run python benchmarks/scoring.py [--rows 10000000] [--rounds 5] [--json FILE]

The table has eight float columns, and the network two hidden layers. Each contestant is a separate process, timed from
its start to the written Parquet file. They take turns in random order. Needs estimator-exporters[predict].
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pyarrow as pa
from _report import report, write
from _side_by_side import compare
from pyarrow import parquet

import estimator_core as ec

HERE = Path(__file__).parent
OURS, HAND = "estimator predict", "hand-written loop"
COLUMNS, AT_A_TIME, PIECE = [f"x{number}" for number in range(8)], 16384, 1_000_000


def model_fn(features, labels, mode):
    hidden = jnp.stack([features[name] for name in COLUMNS], axis=1)
    for layer, width in enumerate((64, 64, 1)):
        kernel = ec.get_variable(f"{layer}/kernel", (hidden.shape[1], width), jax.nn.initializers.lecun_normal())
        hidden = jnp.tanh(hidden @ kernel)
    if mode == ec.ModeKeys.PREDICT:
        return ec.EstimatorSpec(mode, predictions={"score": hidden})
    return ec.EstimatorSpec(mode, loss=jnp.mean(hidden**2), train_op=optax.sgd(0.1))


def make_export(folder):
    """Returns the path of an export."""
    rows = {name: np.ones(4, np.float32) for name in COLUMNS}
    config = ec.RunConfig(model_dir=str(folder / "model"), tf_random_seed=1)
    estimator = ec.Estimator(model_fn, config=config).train(lambda: [rows], steps=1)
    features = {name: ec.export.Feature((None,)) for name in COLUMNS}
    receiver = ec.export.build_raw_serving_input_receiver_fn(features)
    return estimator.export_saved_model(str(folder / "export"), receiver)


def make_rows(path, count):
    """Writes a Parquet file of numbers."""
    generator = np.random.default_rng(0)
    schema = pa.schema([(name, pa.float32()) for name in COLUMNS])
    with parquet.ParquetWriter(path, schema) as writer:
        for start in range(0, count, PIECE):
            size = min(PIECE, count - start)
            writer.write_table(pa.table({name: generator.random(size, np.float32) for name in COLUMNS}))


def run(command, peaks):
    """Runs a process and records its peak memory."""
    timed = [sys.executable, "-c", TIMED, *command]
    found = subprocess.run(timed, check=True, capture_output=True, text=True).stderr
    peaks.append(int(found.rsplit("peak", 1)[1]) / 2**10)


TIMED = (
    "import resource, subprocess, sys; code = subprocess.run(sys.argv[1:]).returncode; "
    "print('peak', resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr); sys.exit(code)"
)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as base:
        folder = Path(base)
        export, source = make_export(folder), folder / "rows.parquet"
        make_rows(source, args.rows)
        estimator = str(Path(sys.executable).with_name("estimator"))
        files = {name: folder / f"{number}.parquet" for number, name in enumerate((OURS, HAND))}
        ours = [estimator, "predict", str(folder / "export"), "--input", str(source), "--output", str(files[OURS])]
        commands = {
            OURS: [*ours, "--batch-size", str(AT_A_TIME)],
            HAND: [
                sys.executable,
                str(HERE / "_score_by_hand.py"),
                *(export, str(source), str(files[HAND])),
                str(AT_A_TIME),
            ],
        }
        peaks = {name: [] for name in commands}
        contestants = {name: lambda name=name: run(commands[name], peaks[name]) for name in commands}
        results = compare(contestants, reference=HAND, rounds=args.rounds)
        scores = [parquet.read_table(path)["score"].to_numpy() for path in files.values()]
        np.testing.assert_allclose(*scores, rtol=1e-5, atol=1e-6)
    notes = [f"{name}: peak memory {max(found):.0f} MB" for name, found in peaks.items()]
    targets = {(OURS, HAND): 0.9}
    table = report(
        "scoring", results, steps=args.rows, targets=targets, rows=args.rows, unit=("seconds", 1.0), notes=notes
    )
    write(args.json, table)


if __name__ == "__main__":
    main()
