"""Write one HTML page about the run of a model_dir and its evaluations.

The page is one file: it loads nothing, and can be mailed. `estimator evaluate --checkpoint all --slices ...` fills it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from estimator_core.cli import local_path, page_path


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `estimator report`."""
    parser.add_argument("model_dir", type=local_path, help="directory of the run")
    parser.add_argument("--name", help="the evaluation, as in eval_NAME (default: the one with the newest results)")
    parser.add_argument(
        "--output", metavar="FILE", type=page_path, help="where to write (default: report.html in the model_dir)"
    )


def run(args: argparse.Namespace) -> int:
    """Runs the command."""
    from estimator_report import read_source, write_report

    model_dir = Path(args.model_dir)
    source = read_source(model_dir, args.name)
    path = write_report(source, Path(args.output) if args.output else model_dir / "report.html")
    several = "s" * (len(source.results) != 1)
    told = f"{len(source.results)} checkpoint{several} of the evaluation {source.evaluation or 'without a name'}"
    print(f"{path}: {told if source.results else 'the run, which was not evaluated'}")
    return 0
