"""Runs the workloads of the documents: a JSON file and a plot for each, and a page about all of them.

    uv run python benchmarks/_suite.py [--summary | --part PART ... | --only NAME ...] [--rounds N]
        [--results FOLDER] [--plots FOLDER] [--page FILE] [--list]
        [--tf-python PYTHON] [--torch-python PYTHON] [--keras-python PYTHON] [--trees-python PYTHON]

A part has the full tables of one subject. The summary has some workloads, with few rounds. Nothing else
should run on the machine. A workload that fails is named at the end; the others continue.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

from _page import page
from _plot import draw_all

HERE = Path(__file__).parent
TF, TORCH, KERAS, TREES = "--tf-python", "--torch-python", "--keras-python", "--trees-python"
# The scripts and their arguments, by the name of the result. An option for a peer's interpreter gets it if specified.
SUITE: dict[str, tuple[str, ...]] = {
    "mlp": ("mlp.py", "--steps", "3000", "--rounds", "41"),
    "mlp_steps": ("mlp_steps.py",),
    "mlp_steps_busy": ("mlp_steps.py", "--busy", "1", "2", "4", "--memory-traffic", "1", "--rounds", "9"),
    "mlp_peers": ("mlp_peers.py", TF, TORCH),
    "convnet_digits": ("convnet.py", "--network", "digits", "--steps", "1792", TORCH),
    "convnet_mnist": ("convnet.py", "--network", "mnist", "--steps", "168", TORCH),
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
    "exports": ("exports.py",),
    "evaluation": ("evaluation.py", TF),
    "save": ("save.py",),
    "start_up": ("start_up.py",),
    "many_packages": ("many_packages.py",),
    "inputs": ("inputs.py",),
    "inputs_files": ("inputs_files.py", TF),
    "file_to_model": ("file_to_model.py", "--rows", "200192", TF, TORCH, KERAS, TREES),
    "data_statistics": ("data_statistics.py",),
    "checks": ("checks.py",),
    "memory": ("memory.py",),
    "hooks_cost": ("hooks_cost.py",),
    "growth": ("growth.py",),
    "large_model": ("large_model.py",),
    "embedding_table": ("embedding_table.py",),
    "serving": ("serving.py",),
    "object_stores": ("object_stores.py",),
    "scoring": ("scoring.py",),
    "population": ("population.py",),
    "sweep": ("sweep.py",),
    "folds": ("folds.py",),
    "many_runs": ("many_runs.py",),
}

#: The workloads of the full tables, by subject.
PARTS: dict[str, tuple[str, ...]] = {
    "steps": ("mlp", "mlp_steps", "small_variables", "two_tower", "hooks_cost", "checks"),
    "busy": ("mlp_steps_busy",),
    "networks": ("mlp_peers", "convnet_digits", "convnet_mnist", "convnet_digits_steps", "convnet_mnist_steps"),
    "text": ("bert_tiny", "bert_mini", "bert_mini_full"),
    "runs": ("train_and_evaluate", "save", "start_up", "many_packages", "object_stores"),
    "answers": ("predict", "latency", "exports", "evaluation", "memory"),
    "files": ("inputs", "inputs_files", "file_to_model", "data_statistics"),
    "growth": ("growth", "large_model", "embedding_table"),
    "serving": ("serving", "scoring"),
    "experiments": ("population", "sweep", "folds", "many_runs"),
}
#: The changes for the summary: fewer rounds and less work. It took eight minutes, without two workloads.
SUMMARY: dict[str, tuple[str, ...]] = {
    "mlp_steps": ("--rounds", "5", "--turns", "5"),
    "mlp_peers": ("--rounds", "5"),
    "convnet_digits": ("--rounds", "5"),
    "train_and_evaluate": ("--rounds", "5", "--tf-rounds", "2"),
    "predict": ("--rounds", "3"),
    "latency": ("--rounds", "5"),
    "evaluation": ("--rounds", "5"),
    "save": ("--rounds", "5"),
    "start_up": ("--rounds", "5"),
    "inputs": ("--rounds", "3"),
    "file_to_model": ("--rounds", "3", "--rows", "100352"),
    "bert_tiny": ("--rounds", "3"),
    "growth": ("--rounds", "2", "--only", "hooks", "EvalSpecs"),
}


def command(
    name: str, results: Path, peers: dict[str, str | None], rounds: int | None, *, summary: bool = False
) -> list[str]:
    """Returns the command that starts a workload."""
    script, *arguments = (*SUITE[name], *(SUMMARY[name] if summary else ()))
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
    """Runs the workloads."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--results", type=Path, default=HERE.parent / ".nox" / "bench")
    parser.add_argument("--plots", type=Path, help="folder for the plots (default: no plots)")
    parser.add_argument("--page", type=Path, help="file for a page with plots (default: page.html in the results)")
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("--only", nargs="+", choices=list(SUITE), metavar="NAME")
    chosen.add_argument("--part", nargs="+", choices=list(PARTS), metavar="PART", help=", ".join(PARTS))
    chosen.add_argument("--summary", action="store_true", help="some workloads, with few rounds")
    parser.add_argument("--list", action="store_true", help="print the selected names and run nothing")
    parser.add_argument("--rounds", type=int, help="rounds of every workload, instead of its own number")
    parser.add_argument(TF, help="an interpreter with tensorflow 2.15")
    parser.add_argument(TORCH, help="an interpreter with torch, transformers and accelerate")
    parser.add_argument(KERAS, help="an interpreter with keras 3, jax and tensorflow")
    parser.add_argument(TREES, help="an interpreter with xgboost, lightgbm and pandas")
    args = parser.parse_args()
    names = args.only or [name for part in args.part or PARTS for name in PARTS[part]]
    if args.summary:
        names = list(SUMMARY)
    if args.list:
        print(*names, sep="\n")
        return
    args.results.mkdir(parents=True, exist_ok=True)
    peers = {TF: args.tf_python, TORCH: args.torch_python, KERAS: args.keras_python, TREES: args.trees_python}
    failed: list[str] = []
    for name in names:
        print(f"\n==== {name}", flush=True)
        began = time.monotonic()
        if subprocess.run(command(name, args.results, peers, args.rounds, summary=args.summary)).returncode:
            failed.append(name)
        print(f"==== {name}: {time.monotonic() - began:.0f} s", flush=True)
    written: Path = args.page or args.results / "page.html"
    written.write_text(page(args.results), encoding="utf-8")
    print(f"\nThe page about all results: {written}")
    if args.plots is not None:
        print(*draw_all(args.plots, args.results), sep="\n")
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
