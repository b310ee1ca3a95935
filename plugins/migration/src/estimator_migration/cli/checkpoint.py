"""Convert a checkpoint of TensorFlow to a model_dir from which training continues.

Variables, slots of the optimizer and the global step are assigned to the model of FILE, and every array is listed. FILE
is the same as for `estimator run`, and estimator-experiment reads it. One training step of FILE in a temporary
directory determines the names of its arrays. For different names, --names is a JSON file: {"new name": "old name"}.
"""

from __future__ import annotations

import argparse
import tempfile

from estimator_core.cli import local_path
from estimator_core.errors import ArgumentError
from estimator_migration.cli.names import read_names

SUMMARY = "convert a checkpoint of TensorFlow: weights, slots, global step"


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `estimator migrate checkpoint`."""
    parser.add_argument("source", metavar="TF_DIR", help="a model_dir of tf.estimator, or a prefix (model.ckpt-50)")
    parser.add_argument("model_dir", metavar="OUT", type=local_path, help="the new model_dir")
    parser.add_argument(
        "--program",
        required=True,
        metavar="FILE[:FUNCTION]",
        help="the new program, and the function that makes its Experiment",
    )
    parser.add_argument(
        "--hparams", default="", metavar="a=1,b=[2,3]", help="hyperparameters that override those of the file"
    )
    parser.add_argument("--names", metavar="JSON", help="a JSON file: old names by new name")


def run(args: argparse.Namespace) -> int:
    """Runs the command."""
    try:
        from estimator_experiment import open_program
    except ModuleNotFoundError as error:
        if error.name != "estimator_experiment":
            raise  # the package is installed, but one of its imports is not
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
