"""Train and evaluate an experiment fold by fold, as configured in [crossval] of a configuration file.

Each fold has its own model_dir. Running the command again keeps finished folds and continues an interrupted fold from
its checkpoint. At the end it prints mean and interval of every metric. For each row, it writes the prediction of the
fold that was not trained on this row, in the order of the input. With --export, all folds become one export that
returns the mean of their predictions.

Example:
    estimator crossval iris.toml
    estimator crossval iris.toml --export
    estimator crossval iris.toml --set crossval.splitter=stratified --set crossval.folds=10
"""

from __future__ import annotations

import argparse
from pathlib import Path

from estimator_runs.cli.arguments import add_file_arguments


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `estimator crossval`."""
    add_file_arguments(parser, table="crossval", example="crossval.folds=10")
    parser.add_argument("--export", action="store_true", help="export all folds as one model: the mean of predictions")
    parser.add_argument(
        "--format", default="stablehlo", metavar="NAME", help="format of the export (default: stablehlo)"
    )


def run(args: argparse.Namespace) -> int:
    """Runs the command."""
    from dataclasses import asdict

    import numpy as np

    from estimator_core.errors import ArgumentError
    from estimator_core.plugins import default_plugins
    from estimator_experiment.cli.json_text import json_text
    from estimator_experiment.cli.run_report import table
    from estimator_runs.folds.driving import open_folds, run_folds
    from estimator_runs.folds.ensemble import export_ensemble, receiver_of
    from estimator_runs.folds.results import metrics_over_folds, out_of_fold

    if args.export:
        default_plugins().find("format", args.format)  # refuses a missing format before anything is trained
    folds = open_folds(Path(args.file), Path(args.dir) if args.dir else None, args.settings)
    if args.export:
        receiver_of(folds)
    run_folds(folds)
    metrics = metrics_over_folds(folds)
    rows, columns = out_of_fold(folds)
    path = folds.folder / "out_of_fold.npz"
    try:
        np.savez(path, allow_pickle=False, rows=rows, **{f"column/{name}": value for name, value in columns.items()})
    except OSError as error:
        raise ArgumentError(f"{path} cannot be written: {error.strerror}.") from error
    exported = export_ensemble(folds, format=args.format) if args.export else None
    if args.json:
        found = {name: asdict(one) for name, one in metrics.items()}
        print(json_text({"metrics": found, "rows": len(rows), "predictions": str(path), "export": exported}))
        return 0
    lines = [(name, f"{one.mean:.4g}", f"{one.low:.4g}", f"{one.high:.4g}") for name, one in metrics.items()]
    print(f"{len(folds.splits)} folds of {len(folds.rows)} rows\n")
    print(table(lines, ("metric", "mean", "low", "high")))
    print(f"\npredictions  {path}: {len(rows)} rows, {', '.join(sorted(columns))}")
    if exported is not None:
        print(f"export       {exported}")
    return 0
