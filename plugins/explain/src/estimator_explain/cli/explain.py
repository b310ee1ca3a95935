"""Show the features on which the metrics and predictions of a model depend.

FILE is the same as for `estimator run`. Without FILE, the command uses the file of the run record in --model-dir. The
rows are those of the evaluation of the experiment. Nothing is trained, and no evaluation is recorded. The result is
written to MODEL_DIR/explanations.json, and `estimator report` shows it.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
from collections.abc import Generator
from dataclasses import asdict

from estimator_core.errors import ArgumentError

#: The variable by which `--quiet` hides progress. It is not set or empty otherwise.
_QUIET = "ESTIMATOR_QUIET"


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `estimator explain`."""
    parser.add_argument(
        "file", metavar="FILE[:FUNCTION]", nargs="?", help="as for `estimator run` (default: that of the run record)"
    )
    parser.add_argument("--model-dir", help="directory of the run (default: where `estimator run FILE` trains)")
    parser.add_argument("--hparams", metavar="a=1,b=[2,3]", help="hyperparameters that replace the file's")
    parser.add_argument(
        "--features",
        nargs="+",
        metavar="FEATURE[,FEATURE...]",
        help="features to shuffle; a comma shuffles features together (default: each by itself)",
    )
    parser.add_argument(
        "--metrics",
        nargs="+",
        metavar="NAME",
        help="metrics; NAME:min and NAME:max say which way is good (default: all)",
    )
    parser.add_argument("--repeats", type=int, default=5, help="shuffles of each feature (default: 5)")
    parser.add_argument("--rows", type=int, default=10_000, help="the largest number of rows (default: 10000)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the shuffles (default: 0)")
    parser.add_argument(
        "--attributions", action="store_true", help="also compute integrated gradients of the float features"
    )
    parser.add_argument(
        "--output", default="logits", metavar="NAME", help="prediction to attribute (default: logits), or HEAD/NAME"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Runs the command."""
    try:
        from estimator_experiment import open_program
        from estimator_experiment.cli.json_text import json_text
    except ImportError:
        raise ArgumentError(
            "estimator explain reads programs with estimator-experiment: pip install 'estimator-explain[cli]'"
        ) from None
    from estimator_core.checkpoint import checkpoint_step
    from estimator_core.storage import published_file
    from estimator_explain import Explanations, integrated_gradients, permutation_importance, write_explanations
    from estimator_explain.explanations import FILE
    from estimator_explain.table import table_of

    if args.model_dir == "":  # from an unset shell variable
        raise ArgumentError("--model-dir must not be empty.")
    opened = open_program(args.file, model_dir=args.model_dir, hparams=args.hparams, trained=True)
    estimator, input_fn = opened.experiment.estimator, opened.experiment.eval_input_fn
    path = estimator.latest_checkpoint()
    if path is None:
        raise ArgumentError(f"There is no checkpoint in {opened.model_dir}. Train first, or give another --model-dir.")
    # Attributions come first, because they are quick, and a wrong --output ends the command before the long part.
    strengths: dict[str, float] = {}
    residual = 0.0
    if args.attributions:
        parts = integrated_gradients(estimator, input_fn, output=args.output, rows=args.rows, checkpoint_path=path)
        strengths, residual = parts.strength, parts.residual
    with _without_evaluations(logging.getLogger("estimator_core")):
        importances = permutation_importance(
            estimator,
            input_fn,
            features=[names.split(",") for names in args.features] if args.features else None,
            metrics=args.metrics,
            repeats=args.repeats,
            seed=args.seed,
            rows=args.rows,
            checkpoint_path=path,
        )
    found = Explanations(step=checkpoint_step(path), importances=importances, strengths=strengths, residual=residual)
    print(json_text(asdict(found)) if args.json else table_of(found))  # first, because the result took long
    place = os.path.join(opened.model_dir, FILE)  # at a URL, too
    try:
        with published_file(place) as written:
            write_explanations(written.parent, found)
    except OSError as error:
        raise ArgumentError(f"{error.filename or place} cannot be written: {error.strerror}.") from error
    if not args.json:
        print(f"written to {place}")
    return 0


@contextlib.contextmanager
def _without_evaluations(logger: logging.Logger) -> Generator[None]:
    """Hides the lines and the progress of each evaluation, because there are many. `--verbose` shows them."""
    level, quiet = logger.level, os.environ.get(_QUIET, "")
    if level == logging.INFO:
        logger.setLevel(logging.WARNING)
        os.environ[_QUIET] = "1"
    try:
        yield
    finally:
        logger.setLevel(level)
        os.environ[_QUIET] = quiet
