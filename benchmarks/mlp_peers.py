"""Training of the MLP 64-128-128-10, batch 32, with the peers, each with its own array input.

    uv run python benchmarks/mlp_peers.py [--rounds 15] [--epochs 10] [--tf-python PYTHON] [--torch-python PYTHON]
        [--json FILE]

Keras 3 runs on JAX in this process. tf.estimator, hand-written PyTorch and Lightning run in separate processes.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from _peers import keras_mlp, tf_estimator, torch_peers
from _report import report, write
from _side_by_side import compare
from mlp import BATCH, ROWS, WIDTHS, bare_loop, estimator_loop


def main() -> None:
    """Runs the comparison."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--epochs", type=int, default=10, help=f"of {ROWS // BATCH} steps")
    parser.add_argument("--tf-python")
    parser.add_argument("--torch-python", help="an interpreter with torch and lightning")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    steps = args.epochs * ROWS // BATCH
    generator, keras = np.random.default_rng(0), keras_mlp(WIDTHS)
    x = generator.normal(size=(ROWS, WIDTHS[0])).astype(np.float32)
    y = generator.integers(0, WIDTHS[-1], size=ROWS).astype(np.int32)
    ours = "estimator, default hooks"
    contestants = {
        "bare loop": bare_loop(steps),
        ours: estimator_loop(steps),
        "estimator, auto": estimator_loop(steps, steps_per_dispatch="auto"),
        "Keras": lambda: keras.fit(x, y, batch_size=BATCH, epochs=args.epochs, verbose=0),
        **tf_estimator(args.tf_python, "train", steps=steps),
        **torch_peers(args.torch_python, "mlp", steps),
    }
    pairs = [(ours, peer) for peer in ("Keras", "tf.estimator", "PyTorch", "Lightning")]
    results = compare(contestants, reference="bare loop", rounds=args.rounds, pairs=pairs)
    targets = {("estimator, auto", "bare loop"): 1.2, (ours, "Keras"): 2.0, (ours, "tf.estimator"): 5.0}
    title = "MLP 64-128-128-10, batch 32, Adam, and the peers"
    write(args.json, report(title, results, steps=steps, targets=targets))


if __name__ == "__main__":
    main()
