"""Migrate a program from tf.estimator: list the required changes, and make the mechanical ones.

`migrate check FILES` lists every name of TensorFlow with its line, its new name and the required change: the same,
renamed, behaves differently, rewrite by hand, no successor, or unknown. The exit status is 3 if something must change,
so that a build can check for completion. `migrate rewrite FILES` prints the mechanical changes as a diff, with a marked
note (# MIGRATE:) at every other place; `--write` applies it. `migrate checkpoint TF_DIR OUT` creates a model_dir from
which training continues. `migrate savedmodel DIR` prints the inputs and outputs of an exported model, and writes a
receiver with the same inputs. `migrate prove OLD NEW --tf-python PYTHON` runs both programs and compares their results.
"""

from __future__ import annotations

import argparse
import traceback

from estimator_migration.cli import check, checkpoint, prove, rewrite, savedmodel

_COMMANDS = {
    "check": check,
    "rewrite": rewrite,
    "checkpoint": checkpoint,
    "savedmodel": savedmodel,
    "prove": prove,
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `estimator migrate`."""
    commands = parser.add_subparsers(dest="migrate_command", metavar="COMMAND", required=True)
    for name, module in _COMMANDS.items():
        one = commands.add_parser(name, help=module.SUMMARY, description=module.__doc__)
        module.configure(one)


def run(args: argparse.Namespace) -> int:
    """Runs the command."""
    try:
        return _COMMANDS[args.migrate_command].run(args)
    except ModuleNotFoundError as error:
        if error.name == "tensorflow" and _came_from_keras(error):
            error.add_note("Keras uses TensorFlow as its backend here. Set KERAS_BACKEND=jax before the command.")
        raise


def _came_from_keras(error: ImportError) -> bool:
    modules = (frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(error.__traceback__))
    return any(module.partition(".")[0] == "keras" for module in modules)
