"""Examine the installation: versions, plugins, devices, disk, permissions.

The exit status is 1 if a repair is needed. To examine one plugin: estimator plugins doctor NAME.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from estimator_core.cli import local_path
from estimator_core.errors import ArgumentError


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `estimator doctor`."""
    parser.add_argument("plugin", nargs="?", help=argparse.SUPPRESS)
    parser.add_argument(
        "--model-dir",
        metavar="DIR",
        type=local_path,
        help="the model_dir of a past or future run (default: this directory)",
    )
    parser.add_argument("--devices", action="store_true", help="compute on each device, and compare the results")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Runs every check. Returns 1 if there is a fault."""
    from estimator_terminal import checks

    if args.plugin is not None:
        raise ArgumentError(f"to examine one plugin: estimator plugins doctor {args.plugin}")
    findings = [
        *checks.check_versions(),
        *checks.check_plugins(),
        *checks.check_devices(compute=args.devices),
        *checks.check_directory(Path(args.model_dir or ".")),
        *(checks.check_run(Path(args.model_dir)) if args.model_dir else ()),
    ]
    if args.json:
        print(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        print("\n".join(f"{'FAULT' if one.fault else 'ok   '}  {one.check}: {one.text}" for one in findings))
    return int(any(finding.fault for finding in findings))
