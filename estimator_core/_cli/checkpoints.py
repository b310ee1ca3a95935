"""List the checkpoints of a model_dir; show variables and manifest of one, or the difference of two."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from estimator_core._checkpoint.catalog import all_checkpoints, listed, unnamed
from estimator_core._checkpoint.fetched import fetched, resolve_checkpoint
from estimator_core._checkpoint.layout import CHECKPOINTS_DIR
from estimator_core._checkpoint.manifest import Manifest, read_manifest
from estimator_core._cli import checkpoint_report as report
from estimator_core._cli.checkpoint_report import UnnamedCheckpointError
from estimator_core.errors import CheckpointCorruptError, CheckpointError, CheckpointNotFoundError


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `estimator checkpoints`."""
    parser.add_argument(
        "directory", metavar="DIR", help="a model_dir, or one checkpoint (MODEL_DIR/checkpoints/100); a URL too"
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--variables", action="store_true", help="names, shapes and dtypes in DIR (the newest checkpoint)"
    )
    what.add_argument("--manifest", action="store_true", help="who wrote DIR (the newest checkpoint), and with what")
    what.add_argument(
        "--diff", nargs=2, metavar=("A", "B"), help="difference of two checkpoints: steps of DIR, or paths"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Prints what was asked for."""
    directory = fetched(args.directory, manifests=True)
    if args.diff:
        a, b = (_one_of(directory, name) for name in args.diff)
        rows, text = report.difference(a, b)
    elif args.variables:
        rows, text = report.variables(read_manifest(resolve_checkpoint(directory)))
    elif args.manifest:
        rows, text = report.manifest(resolve_checkpoint(directory))
    else:
        rows, text = report.listing(_listed(directory))
    told = json.dumps(rows, indent=2) if args.json else text
    if directory != Path(args.directory):  # a copy of what a URL names, which goes with this process
        told = told.replace(str(directory), args.directory.rstrip("/").removesuffix(f"/{CHECKPOINTS_DIR}"))
    print(told)
    return 0


def _listed(directory: Path) -> Sequence[tuple[Path, Manifest | CheckpointError]]:
    """Those that should be there, then those that are there and do not count."""
    model_dir = directory.parent if directory.name == CHECKPOINTS_DIR else directory
    found: list[tuple[Path, Manifest | CheckpointError]] = []
    for one in listed(model_dir):
        if one.problem:
            found.append((one.path, CheckpointCorruptError(f"{one.path}: {one.problem}")))
        else:
            found.append((one.path, _manifest_or_error(one.path)))
    for path in unnamed(model_dir):
        found.append(
            (path, UnnamedCheckpointError(f"{path} is not used: no run of this model_dir has saved it there."))
        )
    return found or [(path := resolve_checkpoint(directory), _manifest_or_error(path))]


def _manifest_or_error(path: Path) -> Manifest | CheckpointError:
    try:
        return read_manifest(path)
    except CheckpointError as error:
        return error


def _one_of(directory: Path, name: str) -> tuple[str, Manifest]:
    """A checkpoint named by its step in a model_dir, or by its path."""
    path = next((path for path in all_checkpoints(directory) if Path(path).name == name), name)
    try:
        return name, read_manifest(resolve_checkpoint(path))
    except CheckpointNotFoundError:
        steps = ", ".join(Path(path).name for path in all_checkpoints(directory)) or "none"
        raise CheckpointNotFoundError(
            f"There is no checkpoint {name!r}: {directory} has the steps {steps}, and no path leads to one."
        ) from None
