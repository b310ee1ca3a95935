"""Run the experiment of a file.

FILE defines `experiment_fn(run_config, hparams) -> ec.Experiment`; FILE:function names another function. FILE may
define `HPARAMS`, the default hyperparameters, and `serving_input_receiver_fn`, which `--exporter` uses. With
estimator-runs, FILE may also be a TOML or YAML file. `--dry-run` also accepts any program that calls an Estimator
itself.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from estimator_core.errors import ArgumentError
from estimator_experiment.opening import not_empty
from estimator_experiment.schedules import SCHEDULES


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `estimator run`."""
    parser.add_argument(
        "file",
        metavar="FILE[:FUNCTION]",
        help=(
            "a Python file, and the function in it that makes the Experiment (default: experiment_fn); or a .toml or "
            ".yaml file (estimator-runs)"
        ),
    )
    parser.add_argument(
        "--schedule",
        help=(
            f"the method of Experiment to run: {', '.join(SCHEDULES)} (default: by the role of this process, "
            "train_and_evaluate without other processes)"
        ),
    )
    parser.add_argument(
        "--model-dir",
        type=not_empty,
        help="directory of checkpoints, curves and exports (default: runs/<name of the file>)",
    )
    parser.add_argument(
        "--hparams", default="", metavar="a=1,b=[2,3]", help="hyperparameters that override those of the file"
    )
    parser.add_argument(
        "--set",
        dest="settings",
        action="append",
        default=[],
        metavar="run_config.FIELD=VALUE",
        help="a RunConfig field, for example run_config.save_checkpoints_steps=50; any key of a .toml or .yaml file",
    )
    parser.add_argument(
        "--hook",
        dest="hooks",
        action="append",
        default=[],
        metavar="NAME",
        help="add a hook of an installed plugin to the training run; with arguments: NAME(a=1, b=word)",
    )
    parser.add_argument(
        "--exporter",
        dest="exporters",
        action="append",
        default=[],
        metavar="NAME",
        help="add an exporter of an installed plugin; with arguments: NAME(a=1, b=word)",
    )
    parser.add_argument(
        "--predictions", type=int, default=5, metavar="N", help="predictions to show at the end (default: 5)"
    )
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument("--json", action="store_true", help="print the result as one line of JSON, without predictions")
    shape.add_argument(
        "--dry-run",
        action="store_true",
        help=(
            "try inputs, modes and exports, show variables, memory and hooks, train on one batch until it overfits; "
            "write nothing. For a program without an experiment_fn, try its calls of Estimators"
        ),
    )
    parser.add_argument(
        "--arguments",
        default="",
        metavar="TEXT",
        help="with --dry-run: the command line of such a program",
    )


def run(args: argparse.Namespace) -> int:
    """Runs the command."""
    from estimator_experiment import learn_runner
    from estimator_experiment.cli import run_report
    from estimator_experiment.cli.script_trial import is_script, try_script
    from estimator_experiment.program import load_program

    if args.predictions < 0:
        raise ArgumentError(f"--predictions must be at least 0, given: {args.predictions}.")
    if args.dry_run and (args.arguments or is_script(args.file)):
        return try_script(args.file, args.arguments)
    if args.arguments:
        raise ArgumentError("--arguments needs --dry-run: it is the command line of a program with its own main.")
    program = load_program(args.file, args.settings)
    hparams = program.hparams(args.hparams)
    if args.model_dir is not None and any(text.startswith("run_config.model_dir=") for text in args.settings):
        raise ArgumentError("model_dir is given twice, by --model-dir and by --set.")
    config = program.run_config(args.model_dir)
    made: list[Any] = []

    def experiment_fn(run_config: Any, params: Any) -> Any:
        experiment = learn_runner.checked_experiment(program.experiment_fn(run_config, params))
        made.append(experiment)
        _add_components(experiment, args, program.serving_input_receiver_fn)
        if not args.dry_run:
            _add_hooks_of_plugins(experiment, args)
        return experiment

    if args.dry_run:
        from estimator_experiment.cli.dry_run import dry_run

        return dry_run(experiment_fn, config, hparams)

    result = learn_runner.run(experiment_fn, run_config=config, schedule=args.schedule, hparams=hparams)
    if args.json:
        print(run_report.as_json(made[0], result))
    else:
        run_report.show(made[0], result, predictions=args.predictions)
    return 0


def _add_components(experiment: Any, args: argparse.Namespace, serving_input_receiver_fn: Any) -> None:
    """Adds the hooks and exporters of the command line."""
    from estimator_experiment.cli.named_component import made
    from estimator_experiment.program import file_and_function, receiver_of

    experiment.extend_train_hooks([made("hook", name) for name in args.hooks])
    if not args.exporters:
        return
    if serving_input_receiver_fn is None:
        path = Path(file_and_function(args.file)[0])
        raise ArgumentError(
            f"--exporter needs to know the features of a request: define {receiver_of(path)} in {path.name}."
        )
    old = experiment.reset_export_strategies()
    experiment.reset_export_strategies([*old, *(_exporter(text, serving_input_receiver_fn) for text in args.exporters)])


def _add_hooks_of_plugins(experiment: Any, args: argparse.Namespace) -> None:
    """Adds the hooks by which plugins observe a program, such as the one that records it for `estimator reproduce`."""
    from estimator_core.plugins import default_plugins
    from estimator_experiment.hookspecs import RunCommand

    command = RunCommand(
        file=args.file,
        settings=tuple(args.settings),
        hparams=args.hparams,
        schedule=args.schedule,
        hooks=tuple(args.hooks),
        exporters=tuple(args.exporters),
    )
    for hooks in default_plugins().call("estimator_program_hooks", command=command, experiment=experiment):
        experiment.extend_train_hooks(hooks)


def _exporter(text: str, serving_input_receiver_fn: Any) -> Any:
    """Returns an exporter, made with its name and the receiver function."""
    from estimator_experiment.cli.named_component import made, parsed

    return made("exporter", text, parsed(text, "--exporter")[0].rpartition(":")[2], serving_input_receiver_fn)
