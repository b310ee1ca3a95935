"""Find the learning rate, the batch size and the amount of data of an experiment before a long training.

FILE is the same as for `estimator run`. `rate` trains with a learning rate that grows from step to step. `batch`
doubles the batch size until a step does not fit into memory, and measures each size. `data` trains on parts of the
data, and predicts the effect of more data. Nothing is kept.

Example:
    estimator budget rate digits.toml --low 1e-6 --high 1
    estimator budget batch digits.toml --output sizes.html
    estimator budget data digits.toml --metric accuracy --rows 1400
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

from estimator_core.cli import page_path


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `estimator budget`."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, summary in (
        ("rate", "the range of useful learning rates"),
        ("batch", "the memory and the throughput of batch sizes, and the largest that fits"),
        ("data", "a metric by the number of training rows, and the effect of more rows"),
    ):
        action = actions.add_parser(name, help=summary, description=summary)
        action.add_argument("file", metavar="FILE[:FUNCTION]", help="see `estimator run`")
        action.add_argument("--hparams", metavar="a=1,b=[2,3]", help="hyperparameters that override those of the file")
        action.add_argument(
            "--set",
            dest="settings",
            action="append",
            default=[],
            metavar="KEY=VALUE",
            help="a setting, as for `estimator run`",
        )
        action.add_argument("--output", metavar="FILE.html", type=page_path, help="also write a page with the curve")
        action.add_argument("--json", action="store_true", help="print JSON")
        if name == "rate":
            action.add_argument("--low", type=float, default=1e-6, help="the first rate (default: 1e-6)")
            action.add_argument("--high", type=float, default=1.0, help="the last rate (default: 1)")
            action.add_argument("--steps", type=int, default=100, help="number of steps (default: 100)")
            action.add_argument(
                "--name", default="learning_rate", help="the argument of the optimizer (default: learning_rate)"
            )
        elif name == "data":
            action.add_argument("--metric", default="loss", help="evaluation metric (default: loss)")
            action.add_argument(
                "--rows",
                type=int,
                metavar="N",
                help="the largest number of rows (default: all; required for an endless input)",
            )
            action.add_argument(
                "--sizes", type=int, default=5, help="number of sizes, each half of the next (default: 5)"
            )
            action.add_argument("--seeds", type=int, default=3, help="runs for each size (default: 3)")
            action.add_argument("--steps", type=int, help="steps of each run (default: train.max_steps)")
        else:
            action.add_argument(
                "--memory", type=float, metavar="GIB", help="memory for a step (default: the free memory)"
            )
            action.add_argument(
                "--largest", type=int, default=65536, metavar="N", help="largest batch size to try (default: 65536)"
            )


def run(args: argparse.Namespace) -> int:
    """Runs the command."""
    import tempfile

    from estimator_core.errors import ArgumentError
    from estimator_experiment import open_program

    for name in ("memory", "largest"):
        value = getattr(args, name, None)
        if value is not None and not 0 < value < math.inf:
            raise ArgumentError(f"--{name} must be positive, given: {value}.")
    with tempfile.TemporaryDirectory(prefix="estimator-budget-") as folder:
        opened: Any = open_program(args.file, model_dir=folder, hparams=args.hparams, settings=args.settings)
        return {"rate": _rate, "batch": _batch, "data": _data}[args.action](args, opened.experiment)


def _rate(args: argparse.Namespace, experiment: Any) -> int:
    from dataclasses import asdict

    import numpy as np

    from estimator_experiment.cli.json_text import json_text
    from estimator_experiment.cli.run_report import number, table
    from estimator_runs.budget.rates import rate_range

    found = rate_range(
        experiment.estimator,
        experiment.train_input_fn,
        low=args.low,
        high=args.high,
        steps=args.steps,
        name=args.name,
        hooks=experiment.train_hooks,
    )
    if args.json:
        print(json_text(asdict(found)))
    else:
        shown = np.unique(np.linspace(0, len(found.rates) - 1, 12).astype(int)) if found.rates else []
        print(table([(number(found.rates[n]), number(found.losses[n])) for n in shown], ("rate", "smoothed loss")))
        print(f"\nsuggested  {'none: the loss does not fall' if found.suggested is None else number(found.suggested)}")
        if found.at_end:
            option = {"lowest": "a lower --low", "highest": "a higher --high"}[found.at_end]
            print(f"           This is at the {found.at_end} end of the range of this test: try {option}.")
        print(f"diverged   {'not up to the last rate' if found.diverged is None else 'at ' + number(found.diverged)}")
    points = [(float(np.log10(rate)), loss) for rate, loss in zip(found.rates, found.losses, strict=True)]
    _write(args, "Learning rates", "decimal logarithm of the rate", "smoothed loss", points)
    return 0


def _batch(args: argparse.Namespace, experiment: Any) -> int:
    from estimator_experiment.cli.json_text import json_text
    from estimator_experiment.cli.run_report import table
    from estimator_runs.budget.sizes import batch_sizes

    memory = None if args.memory is None else int(args.memory * 2**30)
    found = batch_sizes(
        experiment.estimator,
        experiment.train_input_fn,
        memory=memory,
        largest=args.largest,
        hooks=experiment.train_hooks,
    )
    measured = [(one.size, one.examples_per_second) for one in found]
    points = [(float(size), rate) for size, rate in measured if rate is not None]
    if args.json:
        rows = [{"size": one.size, "bytes": one.memory, "seconds": one.seconds} for one in found]
        print(json_text({"sizes": rows, "largest": int(points[-1][0]) if points else None}))
    else:
        lines = [
            (
                str(one.size),
                "-" if one.memory is None else f"{one.memory / 2**20:.1f}",
                "-" if one.seconds is None else f"{one.seconds * 1e3:.2f}",
                "does not fit" if one.examples_per_second is None else f"{one.examples_per_second:,.0f}",
            )
            for one in found
        ]
        print(table(lines, ("batch size", "MiB", "ms a step", "examples/s")))
        if points:
            fastest = max(points, key=lambda point: point[1])
            print(f"\nlargest that fits  {points[-1][0]:.0f}\nmost examples/s    {fastest[0]:.0f}")
    _write(args, "Batch sizes", "batch size", "examples per second", points)
    return 0 if points else 1


def _data(args: argparse.Namespace, experiment: Any) -> int:
    from dataclasses import asdict

    import numpy as np

    from estimator_core.errors import ArgumentError
    from estimator_experiment.cli.json_text import json_text
    from estimator_experiment.cli.run_report import number, table
    from estimator_runs.budget.data import data_curve

    steps = experiment.train_steps if args.steps is None else args.steps
    if steps is None:
        raise ArgumentError("A learning curve needs to know when a run ends: give --steps, or set train.max_steps.")
    if experiment.train_hooks:
        raise ArgumentError("A learning curve calls no hooks: leave them out with --set hooks=[].")
    found = data_curve(
        experiment.estimator,
        experiment.train_input_fn,
        experiment.eval_input_fn,
        steps=steps,
        metric=args.metric,
        rows=args.rows,
        sizes=args.sizes,
        seeds=args.seeds,
        eval_steps=experiment.eval_steps,
    )
    means = [float(np.mean(one)) for one in found.values]
    if args.json:
        print(json_text(asdict(found)))
    else:
        spread = [f"{np.std(one, ddof=1):.2g}" if len(one) > 1 else "-" for one in found.values]
        rows = list(zip(map(str, found.sizes), map(number, means), spread, strict=True))
        print(table(rows, ("rows", args.metric, "deviation")) + "\n")
        ahead = [(str(one.rows), *map(number, (one.value, one.low, one.high))) for one in found.predictions]
        print(table(ahead, ("rows", "predicted", "low", "high")))
    _write(args, "Amount of data", "training rows", args.metric, list(zip(map(float, found.sizes), means, strict=True)))
    return 0


def _write(args: argparse.Namespace, title: str, x: str, y: str, points: list[tuple[float, float]]) -> None:
    """Writes a page with the curve if the user requests it."""
    if args.output is None:
        return
    from estimator_runs.budget.page import write_curve

    print(write_curve(Path(args.output), title, x=x, y=y, points=points))
