"""Export a checkpoint of the experiment of a file.

FILE is the same as for `estimator run`, and defines serving_input_receiver_fn. Without FILE, the command uses the file,
hyperparameters and settings of the run record in --model-dir. Nothing is trained. The export is read back and compared
with the estimator. The command prints its path.
"""

from __future__ import annotations

import argparse
import json
import os

from estimator_core.errors import ArgumentError
from estimator_experiment.opening import add_model_dir, add_program_arguments


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `estimator export`."""
    add_program_arguments(parser)
    add_model_dir(parser)
    parser.add_argument("--checkpoint", default="newest", metavar="STEP", help='a step, or "newest" (default)')
    parser.add_argument("--format", default="stablehlo", metavar="NAME", help="export format (default: stablehlo)")
    parser.add_argument(
        "--output", metavar="DIR", help="parent directory of exports (default: export/command in the model_dir)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Runs the command."""
    from estimator_core.plugins import default_plugins
    from estimator_experiment.cli.chosen_checkpoints import chosen_checkpoints
    from estimator_experiment.cli.writable import check_writable
    from estimator_experiment.opening import open_program
    from estimator_experiment.program import receiver_of

    default_plugins().find("format", args.format)  # refuses a missing format before the program is loaded
    opened = open_program(
        args.file, model_dir=args.model_dir, hparams=args.hparams, settings=args.settings, trained=True
    )
    receiver = opened.program.serving_input_receiver_fn
    if receiver is None:
        file = opened.program.path
        example = ", for example with ec.export.build_raw_serving_input_receiver_fn" if file.suffix == ".py" else ""
        raise ArgumentError(
            f"{file} defines no {receiver_of(file)}, which names the features of a request. Define it there{example}."
        )
    (checkpoint,) = chosen_checkpoints(opened.model_dir, [args.checkpoint])
    base = args.output or os.path.join(opened.model_dir, "export", "command")  # at a URL, too
    check_writable("The export goes to", base, cure="Give another directory: --output DIR.")
    path = opened.experiment.estimator.export_saved_model(
        base,
        receiver,
        checkpoint_path=checkpoint,
        format=args.format,
    )
    print(json.dumps({"path": path, "format": args.format, "checkpoint": checkpoint}) if args.json else path)
    return 0
