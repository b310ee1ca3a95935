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
from collections.abc import Mapping, Sequence
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
    from estimator_runs.records.comparing import column_text

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
    lines = [
        (
            str(index),
            *(number(values[key]) for key in keys),
            *(number(metrics[index][name]) if name in metrics[index] else "-" for name in names),
        )
        for index, values in enumerate(trials.values)
    ]
    print(fitted(lines, ("trial", *keys, *names)) + "\n")
    texts = {key: column_text([values[key] for values in trials.values]) for key in keys[1:]}
    labels = [", ".join(f"{key} {column[at]}" for key, column in texts.items()) for at in range(len(trials.values))]
    means = _means(labels, metrics, names)
    print(table(means, ("values", "metric", "mean over seeds", "deviation")))
    for index, reason in failed.items():
        print(f"trial {index} failed: {reason}")
    print(f"\nruns  {trials.folder}\nnext  estimator runs compare {shlex.quote(str(trials.folder))}")
    return 1 if failed else 0


def _means(
    groups: Sequence[str], metrics: Sequence[Mapping[str, float]], names: Sequence[str]
) -> list[tuple[str, ...]]:
    """Returns the group, the metric, its mean and its deviation, for each group of trials that differ in their seeds.

    Args:
        groups: the group of each trial.
        metrics: the metrics of each trial.
        names: the metrics to show.
    """
    import numpy as np

    rows: list[tuple[str, ...]] = []
    for group in dict.fromkeys(groups):
        members = [found for one, found in zip(groups, metrics, strict=True) if one == group]
        for name in names:
            values = [found[name] for found in members if name in found]
            if not values:
                continue
            with np.errstate(invalid="ignore"):  # the loss of a run that has failed may be infinite
                deviation = f"{np.std(values, ddof=1):.2g}" if len(values) > 1 else "-"
            rows.append((group, name, f"{np.mean(values):.4g}", deviation))
    return rows
