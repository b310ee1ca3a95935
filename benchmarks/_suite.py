"""Every workload of the documents, one after the other, with its arguments: a JSON file and a plot for each.

    uv run python benchmarks/_suite.py [--results FOLDER] [--plots FOLDER] [--only NAME ...] [--rounds N]
        [--tf-python PYTHON] [--torch-python PYTHON] [--keras-python PYTHON]

Nothing else should run on the machine. A workload that fails is named at the end; the others go on.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

from _plot import draw_all

HERE = Path(__file__).parent
TF, TORCH, KERAS = "--tf-python", "--torch-python", "--keras-python"
# The result's name: the script and its arguments. An option of a peer's interpreter takes it where it is given.
SUITE: dict[str, tuple[str, ...]] = {
    "mlp": ("mlp.py", "--steps", "3000", "--rounds", "41"),
    "mlp_steps": ("mlp_steps.py",),
    "mlp_steps_busy": ("mlp_steps.py", "--busy", "1", "2", "4", "--memory-traffic", "1", "--rounds", "9"),
    "mlp_peers": ("mlp_peers.py", TF),
    "convnet_digits": ("convnet.py", "--network", "digits", "--steps", "1792"),
    "convnet_mnist": ("convnet.py", "--network", "mnist", "--steps", "168"),
    "convnet_digits_steps": ("convnet_steps.py", "--network", "digits"),
    "convnet_mnist_steps": ("convnet_steps.py", "--network", "mnist", "--steps", "20", "--turns", "5", "--rounds", "7"),
    "two_tower": ("two_tower.py",),
    "small_variables": ("small_variables.py",),
    "bert_tiny": ("bert.py", "--size", "tiny", TORCH),
    "bert_mini": ("bert.py", "--size", "mini", TORCH),
    "bert_mini_full": ("bert.py", "--size", "mini", "--texts", "full", TORCH),
    "train_and_evaluate": ("train_and_evaluate.py", TF),
    "predict": ("predict.py", TF),
    "latency": ("latency.py",),
    "evaluation": ("evaluation.py", TF),
    "save": ("save.py",),
    "start_up": ("start_up.py",),
    "many_packages": ("many_packages.py",),
    "inputs": ("inputs.py",),
    "inputs_files": ("inputs_files.py", TF),
    "file_to_model": ("file_to_model.py", TF, TORCH, KERAS),
    "data_statistics": ("data_statistics.py",),
    "checks": ("checks.py",),
    "memory": ("memory.py",),
    "hooks_cost": ("hooks_cost.py",),
    "growth": ("growth.py",),
    "embedding_table": ("embedding_table.py",),
    "serving": ("serving.py",),
    "object_stores": ("object_stores.py",),
    "scoring": ("scoring.py",),
    "population": ("population.py",),
    "sweep": ("sweep.py",),
    "folds": ("folds.py",),
    "many_runs": ("many_runs.py",),
}


def command(name: str, results: Path, peers: dict[str, str | None], rounds: int | None) -> list[str]:
    """How a workload is started."""
    script, *arguments = SUITE[name]
    parts = [sys.executable, str(HERE / script)]
    for argument in arguments:
        if argument not in peers:
            parts.append(argument)
        elif (python := peers[argument]) is not None:
            parts += [argument, python]
    if rounds is not None:
        parts += ["--rounds", str(rounds)]  # the last one counts
    return [*parts, "--json", str(results / f"{name}.json")]


def main() -> None:
    """Runs them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--results", type=Path, default=HERE.parent / ".nox" / "bench")
    parser.add_argument("--plots", type=Path, help="where to draw (default: not)")
    parser.add_argument("--only", nargs="+", choices=list(SUITE), default=list(SUITE), metavar="NAME")
    parser.add_argument("--rounds", type=int, help="of every workload, in the place of its own number")
    parser.add_argument(TF, help="an interpreter with tensorflow 2.15")
    parser.add_argument(TORCH, help="an interpreter with torch, transformers and accelerate")
    parser.add_argument(KERAS, help="an interpreter with keras 3, jax and tensorflow")
    args = parser.parse_args()
    args.results.mkdir(parents=True, exist_ok=True)
    peers = {TF: args.tf_python, TORCH: args.torch_python, KERAS: args.keras_python}
    failed: list[str] = []
    for name in args.only:
        print(f"\n==== {name}", flush=True)
        began = time.monotonic()
        if subprocess.run(command(name, args.results, peers, args.rounds)).returncode:
            failed.append(name)
        print(f"==== {name}: {time.monotonic() - began:.0f} s", flush=True)
    if args.plots is not None:
        print(*draw_all(args.plots, args.results), sep="\n")
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
