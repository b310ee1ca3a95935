"""Lock the plugins that runs may use: distribution, version and a hash of the installed code of each.

`estimator --locked COMMAND`, `RunConfig(plugins_lock=FILE)` and `lock = "FILE"` of a policy file refuse any others.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from estimator_core.errors import ArgumentError
from estimator_core.plugins import LOCK_FILE, plugins_to_lock
from estimator_policy.locking import may_be_replaced, write_lock


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `estimator plugins lock`."""
    parser.add_argument("file", nargs="?", default=LOCK_FILE, metavar="FILE", help=f"what to write ({LOCK_FILE})")


def run(args: argparse.Namespace) -> int:
    """Writes the file. None of the plugins is imported."""
    rows = plugins_to_lock(os.environ)
    if not may_be_replaced(Path(args.file)):
        raise ArgumentError(f"{args.file} exists and is not a lock of plugins; choose another name.")
    try:
        write_lock(args.file, rows)
    except OSError as error:
        raise ArgumentError(f"{args.file} cannot be written: {error.strerror}.") from error
    print(f"{args.file}: {', '.join(' '.join(filter(None, (row['distribution'], row['version']))) for row in rows)}")
    return 0
