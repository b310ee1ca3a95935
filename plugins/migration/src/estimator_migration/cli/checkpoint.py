"""Makes a model_dir, from which training continues, out of a checkpoint of TensorFlow.

Variables, slots of the optimizer and the global step go to their places in the model of FILE; every array is listed.
FILE is as for `estimator run`, and estimator-experiment reads it. One step of it is trained in a scratch directory,
which determines the names of its arrays. For different names, --names is a JSON file: {"name here": "name there"}.
"""

from __future__ import annotations

import argparse
import tempfile

from estimator_core.cli import local_path
from estimator_core.errors import ArgumentError
from estimator_migration.cli.names import read_names

SUMMARY = "a checkpoint of TensorFlow as one that training continues from: weights, slots, global step"


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `estimator migrate checkpoint`."""
    parser.add_argument("source", metavar="TF_DIR", help="a model_dir of tf.estimator, or a prefix (model.ckpt-50)")
    parser.add_argument("model_dir", metavar="OUT", type=local_path, help="the new model_dir")
    parser.add_argument(
        "--program", required=True, metavar="FILE[:FUNCTION]", help="the program here, and what makes its Experiment"
    )
    parser.add_argument("--hparams", default="", metavar="a=1,b=[2,3]", help="hyperparameters that replace the file's")
    parser.add_argument("--names", metavar="JSON", help="a file with names there by name here")


def run(args: argparse.Namespace) -> int:
    """Runs the command."""
    try:
        from estimator_experiment import open_program
    except ModuleNotFoundError as error:
        if error.name != "estimator_experiment":
            raise  # the package is installed, but an import of it is not
        raise ArgumentError(
            "`estimator migrate checkpoint` reads --program with estimator-experiment, which is not installed: "
            'pip install "estimator-migration[checkpoint]".'
        ) from error
    from estimator_migration.checkpoints import convert_checkpoint

    names = read_names(args.names)
    with tempfile.TemporaryDirectory(prefix="estimator-migrate-") as scratch:
        experiment = open_program(args.program, model_dir=scratch, hparams=args.hparams).experiment
        converted = convert_checkpoint(
            args.source, args.model_dir, experiment.estimator, experiment.train_input_fn, names=names
        )
    print(converted.report())
    print(f"# {args.model_dir}: training continues after step {converted.step}.")
    return 0
