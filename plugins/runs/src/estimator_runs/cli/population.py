"""Train several seeds or learning rates of an experiment together on one device, as configured in its [population].

Every trial has its own model_dir, with the same results as a separate run. The command measures which method is
fastest. After a kill at any moment, running it again continues. At the end it prints every trial, and each metric over
the seeds.

Example:
    estimator population digits.toml --set population.seeds=10
    estimator population digits.toml --set 'population.values={"hparams.learning_rate"=[0.001, 0.01]}'
"""

from __future__ import annotations

import argparse
from pathlib import Path

from estimator_runs.cli.arguments import add_file_arguments


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `estimator population`."""
    add_file_arguments(parser, table="population", example="population.seeds=10")


def run(args: argparse.Namespace) -> int:
    """Runs the command."""
    import shlex

    import numpy as np

    from estimator_experiment.cli.json_text import json_text
    from estimator_experiment.cli.run_report import fitted, number, table
    from estimator_runs.population.driving import open_population, run_population

    trials = open_population(Path(args.file), Path(args.dir) if args.dir else None, args.settings)
    failed = run_population(trials)
    metrics = [
        {name: float(value) for name, value in trials.metrics(index).items() if np.ndim(value) == 0}
        for index in range(len(trials.values))
    ]
    if args.json:
        rows = [
            {"trial": index, "values": values, "metrics": metrics[index], "failed": failed.get(index)}
            for index, values in enumerate(trials.values)
        ]
        print(json_text({"folder": str(trials.folder), "trials": rows}))
        return 1 if failed else 0
    names, keys = sorted({name for one in metrics for name in one}), list(trials.values[0])
    lines: list[tuple[str, ...]] = []
    groups: dict[str, list[int]] = {}
    for index, values in enumerate(trials.values):
        shown = [number(metrics[index][name]) if name in metrics[index] else "-" for name in names]
        lines.append((str(index), *(number(values[key]) for key in keys), *shown))
        groups.setdefault(", ".join(f"{key} {values[key]}" for key in keys[1:]), []).append(index)
    print(fitted(lines, ("trial", *keys, *names)) + "\n")
    told: list[tuple[str, ...]] = []
    for said, members in groups.items():
        for name in names:
            found = [metrics[one][name] for one in members if name in metrics[one]]
            if found:
                with np.errstate(invalid="ignore"):  # the loss of a run that has failed may be infinite
                    deviation = f"{np.std(found, ddof=1):.2g}" if len(found) > 1 else "-"
                told.append((said, name, f"{np.mean(found):.4g}", deviation))
    print(table(told, ("values", "metric", "mean over seeds", "deviation")))
    for index, reason in failed.items():
        print(f"trial {index} failed: {reason}")
    print(f"\nruns  {trials.folder}\nnext  estimator runs compare {shlex.quote(str(trials.folder))}")
    return 1 if failed else 0
