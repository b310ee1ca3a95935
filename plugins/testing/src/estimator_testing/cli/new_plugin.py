"""Write a complete plugin package to start from: a component that works, its tests, README and CI file."""

from __future__ import annotations

import argparse
from pathlib import Path

from estimator_core.plugins import KINDS
from estimator_testing.cli.scaffold import write_package


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `estimator new-plugin`."""
    parser.add_argument("name", help="name of the distribution, such as acme-heads")
    parser.add_argument(
        "--kind", required=True, help=f"what the plugin provides: {', '.join(KINDS)}, or a kind that a plugin defines"
    )
    parser.add_argument("--dir", type=Path, default=Path(), help="where its folder is created (default: here)")


def run(args: argparse.Namespace) -> int:
    """Writes the package, and prints the next steps."""
    written = write_package(args.name, args.kind, args.dir)
    folder = args.dir / args.name
    for path in written:
        print(f"wrote {path}")
    print(f'\nNext:\n  cd {folder}\n  pip install -e ".[test]"\n  pytest\n  estimator plugins doctor {args.name}')
    return 0
