"""Describe an exported model of TensorFlow, and write a receiver with the same inputs.

DIR is a SavedModel. The command lists its signatures, the tf.Examples that it parses, its vocabularies and its assets.
TensorFlow is not required. --receiver FILE writes Python: the receiver, the vocabularies and the class names.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from estimator_core.errors import ArgumentError

SUMMARY = "describe an exported model: signatures, features, vocabularies; write a receiver for it"


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `estimator migrate savedmodel`."""
    parser.add_argument("directory", metavar="DIR", help="an exported model with a saved_model.pb")
    parser.add_argument("--receiver", metavar="FILE", help="the Python file to write; it must not exist")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Runs the command."""
    from estimator_migration.savedmodels import read_saved_model, receiver_source
    from estimator_migration.savedmodels.report import text_report

    model = read_saved_model(args.directory)
    if args.receiver:
        _write(Path(args.receiver), receiver_source(model))
    if args.json:
        print(json.dumps(model.to_json(), indent=2))
        return 0
    print(text_report(model))
    if args.receiver:
        print(f"# The receiver is in {args.receiver}.")
    return 0


def _write(file: Path, source: str) -> None:
    try:
        with file.open("x", encoding="utf-8") as written:
            written.write(source)
    except FileExistsError:
        raise ArgumentError(f"There is already a file {file}. Name another one for --receiver.") from None
    except OSError as error:
        raise ArgumentError(f"--receiver {file} cannot be written: {error.strerror}.") from error
