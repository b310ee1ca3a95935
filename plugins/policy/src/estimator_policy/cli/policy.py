"""Print the effective settings for plugins, each with its value and its source."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

from estimator_core.plugins import default_plugins
from estimator_policy.effective import effective_settings


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `estimator plugins policy`."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Prints the settings. Returns 0."""
    settings = effective_settings(os.environ, folder=Path.cwd(), plugins=default_plugins().records())
    if args.json:
        print(json.dumps([vars(one) for one in settings], indent=2))
        return 0
    rows = [(one.name, _text(one.value), one.origin) for one in settings]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    for name, value, origin in rows:
        print(f"{name:<{widths[0]}}  {value:<{widths[1]}}  {origin}")
    return 0


def _text(value: object) -> str:
    return "all" if value is None else json.dumps(value)
