"""Evaluate checkpoints of the experiment that a file describes, by slice where asked.

FILE is as for `estimator run`; without one, that of the run record in --model-dir is taken, with its hyperparameters
and settings. Nothing is trained. Results are written where `--name` says, as any evaluation's.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from estimator_core.errors import ArgumentError

_COLUMNS = 6


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `estimator evaluate`."""
    parser.add_argument(
        "file", metavar="FILE[:FUNCTION]", nargs="?", help="as for `estimator run` (default: that of the run record)"
    )
    parser.add_argument("--model-dir", required=True, help="where the checkpoints are")
    parser.add_argument(
        "--slices",
        nargs="+",
        default=[],
        metavar="FEATURE[,FEATURE...]",
        help="metrics for each value of these features, too; a comma crosses features (estimator-slices)",
    )
    parser.add_argument(
        "--checkpoint", nargs="+", default=["newest"], metavar="STEP", help='steps, "newest" (default) or "all"'
    )
    parser.add_argument("--metrics", nargs="+", metavar="NAME", help="columns of the table (default: the first six)")
    parser.add_argument("--steps", type=int, help="batches (default: as the experiment says)")
    parser.add_argument("--name", default="one_pass", help="results go to eval_NAME (default: one_pass)")
    parser.add_argument(
        "--hparams", default=None, metavar="a=1,b=[2,3]", help="hyperparameters that replace the file's"
    )
    parser.add_argument(
        "--set",
        dest="settings",
        action="append",
        default=[],
        metavar="run_config.FIELD=VALUE",
        help="a RunConfig field",
    )
    parser.add_argument("--json", action="store_true", help="print JSON: a list with the metrics of each checkpoint")


def run(args: argparse.Namespace) -> int:
    """Runs the command."""
    from estimator_experiment.cli.run_report import number, table
    from estimator_experiment.program import load_program

    model_dir = Path(args.model_dir)
    recorded = None if args.file else _recorded(model_dir)
    settings = [*(recorded.settings if recorded else ()), *args.settings]
    program = load_program(recorded.file if recorded else args.file, settings)
    given = recorded.hparams if recorded and args.hparams is None else args.hparams or ""
    experiment = program.experiment_fn(program.run_config(args.model_dir), program.hparams(given))
    estimator = experiment.estimator
    results: list[Mapping[str, Any]] = []
    for path in _checkpoints(model_dir, args.checkpoint):
        found = estimator.evaluate(
            experiment.eval_input_fn,
            steps=args.steps or experiment.eval_steps,
            hooks=experiment.eval_hooks,
            checkpoint_path=path,
            name=args.name,
            slices=[tuple(names.split(",")) for names in args.slices],
        )
        results.append(found)
        if not args.json:
            plain = {name: value for name, value in found.items() if not isinstance(value, list) and "=" not in name}
            print(table([(name, number(value)) for name, value in plain.items()], ("metric", "value")) + "\n")
            if args.slices:
                print(_slices(found["slices"], args.metrics) + "\n")
    if args.json:
        print(json.dumps([{name: _json(value) for name, value in found.items()} for found in results]))
    else:
        print(f"written to {Path(estimator.eval_dir(args.name)) / 'metrics.jsonl'}")
    return 0


def _recorded(model_dir: Path) -> argparse.Namespace:
    """The arguments of the `estimator run` that trained in a directory.

    Raises:
        ArgumentError: there is no record, or it is of another program.
    """
    from estimator_experiment.cli import run as run_command

    try:
        arguments = json.loads((model_dir / "run.json").read_text())["arguments"]
    except (OSError, ValueError, KeyError, TypeError):
        arguments = []
    if arguments[1:2] != ["run"]:
        raise ArgumentError(
            f"The run record of {model_dir} names no file of `estimator run`. Give the file: estimator evaluate FILE "
            "--model-dir DIR."
        )
    parser = argparse.ArgumentParser()
    run_command.configure(parser)
    return parser.parse_args(arguments[2:])


def _checkpoints(model_dir: Path, wanted: Sequence[str]) -> list[str]:
    """Paths of the checkpoints asked for.

    Raises:
        ArgumentError: there is no such checkpoint.
    """
    from estimator_core.checkpoint import all_checkpoints, checkpoint_step

    by_step = {checkpoint_step(path): path for path in all_checkpoints(str(model_dir))}
    if not by_step:
        raise ArgumentError(f"There is no checkpoint in {model_dir}. Train first, or give another --model-dir.")
    if wanted == ["all"]:
        return list(by_step.values())
    found: list[str] = []
    for step in wanted:
        number = max(by_step) if step == "newest" else int(step) if step.isdigit() else -1
        if number not in by_step:
            raise ArgumentError(
                f"--checkpoint {step}: there is none of this step in {model_dir}. Steps: {sorted(by_step)}."
            )
        found.append(by_step[number])
    return found


def _slices(rows: Sequence[Mapping[str, Any]], metrics: Sequence[str] | None) -> str:
    """The table of slices, each number with its interval.

    Raises:
        ArgumentError: a metric that no slice has.
    """
    from estimator_experiment.cli.run_report import table

    numbers = [name for name, value in rows[0]["metrics"].items() if isinstance(value, float)]
    chosen = list(metrics or numbers[:_COLUMNS])
    if unknown := sorted(set(chosen) - set(numbers)):
        raise ArgumentError(f"--metrics: there are no {unknown} by slice. There are {numbers}.")
    lines = [
        (_name(row["slice"]), str(row["examples"]), *(_with_interval(row, name) for name in chosen)) for row in rows
    ]
    return table(lines, ("slice", "examples", *chosen))


def _name(values: Mapping[str, Any]) -> str:
    return ",".join(f"{key}={'(missing)' if value is None else value}" for key, value in values.items()) or "all"


def _with_interval(row: Mapping[str, Any], name: str) -> str:
    ends = row["intervals"].get(name)
    value = f"{row['metrics'][name]:.4g}"
    return value if ends is None else f"{value} [{ends[0]:.4g}, {ends[1]:.4g}]"


def _json(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value
