"""Read configuration files: TOML or YAML that describe a whole experiment.

Example:
    estimator config show digits.toml
    estimator config check digits.toml --set hparams.learning_rate=0.01
    estimator config run digits.toml

`show` prints all effective values as TOML, each with its origin. `check` reports every fault with file, line and
key. `run` is `estimator run`.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `estimator config`."""
    from estimator_experiment.cli import run as run_command

    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, summary in (
        ("show", "print the complete configuration, with the origin of each value"),
        ("check", "report faults; this reads the code that the file names, but trains nothing"),
    ):
        action = actions.add_parser(name, help=summary, description=summary)
        action.add_argument("file", metavar="FILE", help="a TOML or YAML file")
        action.add_argument(
            "--set",
            dest="settings",
            action="append",
            default=[],
            metavar="KEY=VALUE",
            help="a value that overrides that of the file, for example hparams.learning_rate=0.01",
        )
        told = "key, value and origin" if name == "show" else "the file, and whether --build has made its objects"
        action.add_argument("--json", action="store_true", help=f"print JSON: {told}")
        if name == "check":
            action.add_argument("--build", action="store_true", help="also create the model, its inputs and its hooks")
    run_command.configure(actions.add_parser("run", help="like `estimator run`", description=run_command.__doc__))


def run(args: argparse.Namespace) -> int:
    """Runs the command."""
    if args.action == "run":
        from estimator_experiment.cli import run as run_command

        return run_command.run(args)
    from estimator_experiment.cli.json_text import json_text
    from estimator_runs.configuration.reading import read_configuration

    read = read_configuration(Path(args.file), args.settings)
    if args.action == "check":
        program = read.program()
        if args.build:
            with tempfile.TemporaryDirectory(prefix="estimator-config-") as directory:
                program.experiment_fn(program.run_config(directory), program.hparams(""))
        print(json_text({"file": args.file, "built": args.build}) if args.json else f"{args.file} has no faults.")
        return 0
    from estimator_runs.configuration.show import beside, effective, show

    if args.json:
        whole = [*effective(read), *((f"plugins: {name}", value, origin) for name, value, origin in beside(read))]
        rows = [{"key": key, "value": value, "origin": origin} for key, value, origin in whole]
        print(json_text(rows, default=str))
    else:
        print(show(read))
    return 0
