"""Evaluate checkpoints of the experiment of a file, optionally by slice.

FILE is the same as for `estimator run`. Without FILE, the command uses the file, hyperparameters and settings of the
run record in --model-dir. Nothing is trained. Results are written to the directory of the evaluation `--name`.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from estimator_core.errors import ArgumentError
from estimator_experiment.opening import add_model_dir, add_program_arguments

_COLUMNS = 6


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `estimator evaluate`."""
    add_program_arguments(parser)
    add_model_dir(parser)
    parser.add_argument(
        "--slices",
        nargs="+",
        default=[],
        metavar="FEATURE[,FEATURE...]",
        help="also compute metrics for each value of these features; a comma crosses features (estimator-slices)",
    )
    parser.add_argument(
        "--checkpoint", nargs="+", default=["newest"], metavar="STEP", help='steps, "newest" (default) or "all"'
    )
    parser.add_argument(
        "--metrics", nargs="+", metavar="NAME", help="metrics in the table (default: all; for slices the first six)"
    )
    parser.add_argument("--steps", type=int, help="number of batches (default: from the experiment)")
    parser.add_argument(
        "--name", default="one_pass", help="name of the evaluation; results go to eval_NAME (default: one_pass)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON: a list with the metrics of each checkpoint")


def run(args: argparse.Namespace) -> int:
    """Runs the command."""
    from estimator_experiment.cli.chosen_checkpoints import chosen_checkpoints
    from estimator_experiment.cli.json_text import json_text
    from estimator_experiment.cli.run_report import json_value, number, table
    from estimator_experiment.cli.writable import check_writable
    from estimator_experiment.opening import open_program

    opened = open_program(
        args.file, model_dir=args.model_dir, hparams=args.hparams, settings=args.settings, trained=True
    )
    experiment = opened.experiment
    estimator = experiment.estimator
    cure = "Copy the run, and pass the copy as --model-dir."
    check_writable("Results go to", estimator.eval_dir(args.name), cure=cure)
    results: list[Mapping[str, Any]] = []
    known: set[str] = set()
    for path in chosen_checkpoints(opened.model_dir, args.checkpoint):
        found = estimator.evaluate(
            experiment.eval_input_fn,
            steps=experiment.eval_steps if args.steps is None else args.steps,
            hooks=experiment.eval_hooks,
            checkpoint_path=path,
            name=args.name,
            slices=[tuple(names.split(",")) for names in args.slices],
        )
        results.append(found)
        plain = {name: value for name, value in found.items() if not isinstance(value, list) and "=" not in name}
        if not args.slices:
            known |= plain.keys()
            plain = _chosen(plain, args.metrics)
        if not args.json:
            print(table([(name, number(value)) for name, value in plain.items()], ("metric", "value")) + "\n")
            if args.slices:
                print(_slices(found["slices"], args.metrics) + "\n")
    if args.json:
        print(json_text([{name: json_value(value) for name, value in found.items()} for found in results]))
    else:
        written = Path(estimator.eval_dir(args.name)).relative_to(estimator.model_dir) / "metrics.jsonl"
        print(f"written to {os.path.join(str(estimator.config.model_dir), written)}")
    if known and (unknown := sorted(set(args.metrics or ()) - known)):  # all is evaluated, written and shown before
        raise ArgumentError(f"--metrics: unknown metrics {unknown}. Known metrics: {sorted(known)}.")
    return 0


def _chosen(metrics: Mapping[str, Any], names: Sequence[str] | None) -> Mapping[str, Any]:
    """Returns the metrics with these names and the step, or all metrics if there are no names."""
    kept = {"global_step", *names} if names else set(metrics)
    return {name: value for name, value in metrics.items() if name in kept}


def _slices(rows: Sequence[Mapping[str, Any]], metrics: Sequence[str] | None) -> str:
    """Returns the table of slices. Each number has its interval.

    Raises:
        ArgumentError: a requested metric is in no slice.
    """
    from estimator_experiment.cli.run_report import table

    numbers = [name for name, value in rows[0]["metrics"].items() if isinstance(value, float)]
    chosen = list(metrics or numbers[:_COLUMNS])
    if unknown := sorted(set(chosen) - set(numbers)):
        raise ArgumentError(f"--metrics: unknown slice metrics {unknown}. Known slice metrics: {numbers}.")
    lines = [
        (name, str(row["examples"]), *(_with_interval(row, metric) for metric in chosen))
        for name, row in zip(_names([row["slice"] for row in rows]), rows, strict=True)
    ]
    return table(lines, ("slice", "examples", *chosen))


def _names(slices: Sequence[Mapping[str, Any]]) -> list[str]:
    """Returns slices in words. If several would have one name, such as those of 1 and of "1", texts are quoted.

    Example:
        >>> _names([{}, {"deck": None}, {"deck": 1}, {"deck": "1"}])
        ['all', 'deck=(missing)', 'deck=1', "deck='1'"]
    """
    names = [_name(values) for values in slices]
    counts = Counter(names)
    return [_name(values, quoted=counts[name] > 1) for name, values in zip(names, slices, strict=True)]


def _name(values: Mapping[str, Any], *, quoted: bool = False) -> str:
    told = {key: repr(value) if quoted and isinstance(value, str) else value for key, value in values.items()}
    return ",".join(f"{key}={'(missing)' if value is None else value}" for key, value in told.items()) or "all"


def _with_interval(row: Mapping[str, Any], name: str) -> str:
    ends = row["intervals"].get(name)
    value = f"{row['metrics'][name]:.4g}"
    return value if ends is None else f"{value} [{ends[0]:.4g}, {ends[1]:.4g}]"
