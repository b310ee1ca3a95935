"""Repeat a run and verify that its weights are equal, bit for bit, or name the first difference.

RUN is the model_dir of an `estimator run`. Its environment is rebuilt with uv in DIR/environment, and the program runs
in DIR/run. The exit code is 0 if the weights are equal, and 1 if they are not.

Example:
    estimator reproduce runs/digits
    estimator reproduce runs/digits --here
    estimator reproduce runs/digits --here --set hparams.learning_rate=0.01
"""

from __future__ import annotations

import argparse
from pathlib import Path


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `estimator reproduce`."""
    parser.add_argument("run", metavar="RUN", help="the model_dir of a run of `estimator run`")
    parser.add_argument("--here", action="store_true", help="use the current environment instead of building one")
    parser.add_argument("--output", metavar="DIR", help="the new model_dir (default: RUN-reproduced)")
    parser.add_argument(
        "--set",
        dest="settings",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="an additional setting of the program, to see its effect",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Runs the command."""
    import os
    from dataclasses import asdict

    from estimator_core.errors import ArgumentError
    from estimator_core.storage import is_url
    from estimator_experiment.cli.json_text import json_text
    from estimator_runs.capsule.reproducing import reproduce

    for place in (args.run, args.output or ""):
        if is_url(place):
            raise ArgumentError(
                f"{place} is a URL, but `estimator reproduce` needs directories of this machine. Copy the run to one, "
                "and pass the copy as RUN."
            )
    model_dir = Path(args.run)
    whole = model_dir.resolve()  # "." has no name
    folder = Path(args.output) if args.output else whole.parent / f"{whole.name}-reproduced"
    quiet = os.environ.get("ESTIMATOR_QUIET") == "1"  # -q, here or before the name of the command
    found = reproduce(model_dir, folder, here=args.here, settings=args.settings, quiet=quiet)
    if args.json:
        print(json_text(asdict(found)))
        return 0 if found.weights is None else 1
    if found.weights is None:
        print(f"The weights of step {found.step} are equal, bit for bit.")
    else:
        print(f"The weights of step {found.step} are not equal: {found.weights}.")
        first = found.differences[:1] or ("nothing that the records hold",)
        print(f"The first difference: {first[0]}.")
    others = found.differences if found.weights is None else found.differences[1:]
    for one in others:
        print(f"Also different: {one}")
    return 0 if found.weights is None else 1
