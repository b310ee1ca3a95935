"""List, compare and plot many runs from their model_dirs, without a server.

DIR is a model_dir, or a directory that contains some. `compare` shows how runs differ. For configurations that ran with
the same seeds, it shows the mean difference and its interval by the paired bootstrap.

Example:
    estimator runs list runs --metric accuracy --mode max
    estimator runs show runs/digits
    estimator runs compare runs/a runs/b --metric accuracy --mode max
    estimator runs plot runs --metric loss accuracy --output runs.html
    estimator runs tag runs/digits good
    estimator runs tag runs/a runs/b --tag good
    estimator runs rm runs/old
"""

from __future__ import annotations

import argparse
from pathlib import Path

from estimator_core.cli import local_path, page_path


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `estimator runs`."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, summary in (
        ("list", "a line for each run, the best first"),
        ("show", "all about one run"),
        ("compare", "how runs differ, and whether the difference is more than chance"),
        ("plot", "one HTML page with curves overlaid"),
        ("tag", "add tags to runs"),
        ("rm", "remove runs"),
    ):
        action = actions.add_parser(name, help=summary, description=summary)
        if name == "tag":
            _configure_tag(action)
            continue
        action.add_argument(
            "dirs",
            metavar="DIR",
            nargs=1 if name == "show" else "+",
            type=local_path,
            help="a model_dir, or a directory that contains some",
        )
        if name in ("list", "show", "compare"):
            action.add_argument("--json", action="store_true", help="print JSON")
        if name in ("list", "compare", "plot"):
            action.add_argument(
                "--mode",
                choices=("min", "max"),
                default="min",
                help="whether lower (min) or higher (max) values are better",
            )
        if name in ("list", "compare"):
            action.add_argument("--metric", default="loss", help="evaluation metric (default: loss)")
        if name == "list":
            action.add_argument("--tag", help="only runs with this tag")
        if name == "plot":
            action.add_argument("--metric", dest="metrics", nargs="+", default=["loss"], help="metrics, one chart each")
            action.add_argument(
                "--output",
                default="runs.html",
                metavar="FILE",
                type=page_path,
                help="page to write (default: runs.html)",
            )
        if name == "rm":
            action.add_argument("--force", action="store_true", help="also remove runs that have not ended normally")


def _configure_tag(action: argparse.ArgumentParser) -> None:
    """Adds the arguments of `tag`: DIR TAG..., or DIR... --tag TAG."""
    action.add_argument(
        "dirs",
        metavar="DIR",
        nargs="+",
        type=local_path,
        help="a model_dir, or a directory that contains some. Without --tag: one DIR, followed by tags",
    )
    action.add_argument(
        "--tag", dest="tags", action="append", default=[], metavar="TAG", help="a tag for all of DIR..."
    )
    action.add_argument("--remove", action="store_true", help="remove these tags")


def run(args: argparse.Namespace) -> int:
    """Runs the command."""
    from estimator_runs.cli import runs_actions

    return getattr(runs_actions, f"{args.action}_")(args, [Path(place) for place in args.dirs])
