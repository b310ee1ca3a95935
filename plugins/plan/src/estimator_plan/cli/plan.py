"""Compile the training step of an experiment for devices that this machine does not have.

FILE is the same as for `estimator run`. Prints, for one step: the memory that each device needs and has, whether the
step fits, and what to change. It also prints operations, an estimate of the time from peak figures, and the collectives
with their bytes. Nothing is trained or written. TPU topologies need estimator-backends-tpu[tpu], and GPU topologies
need estimator-backends-gpu[cuda]; no device is needed. estimator-experiment reads FILE.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable
from typing import Any

from estimator_core.cli import local_path
from estimator_core.errors import ArgumentError

DOES_NOT_FIT = 3


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `estimator plan`."""
    parser.add_argument(
        "file",
        metavar="FILE[:FUNCTION]",
        nargs="?",
        help="a Python file, and the function that makes the Experiment (default: that of the run record)",
    )
    parser.add_argument(
        "--model-dir", metavar="DIR", type=local_path, help="a run, whose record names the program if FILE is left out"
    )
    parser.add_argument("--topology", required=True, help="v5e:4x4, v5p:4x4x4, v6e:8x8, h100x8, h100:2x8, ...")
    parser.add_argument(
        "--mesh", metavar="AXIS=SIZE,...", help="for example data=-1,model=4 (default: the RunConfig's)"
    )
    parser.add_argument(
        "--batch-size", type=int, metavar="N", help="examples of the global batch (default: the input's)"
    )
    parser.add_argument(
        "--fully-sharded",
        action="store_true",
        help="split the state over the devices: adds the partition rule (.*, FullySharded())",
    )
    parser.add_argument(
        "--search", action="store_true", help="compare presets and other meshes with their rules, the best first"
    )
    parser.add_argument(
        "--meshes",
        type=int,
        metavar="N",
        help="with --search: number of meshes to compile besides the presets, the most likely ones (default: 4)",
    )
    parser.add_argument(
        "--dollars", type=float, metavar="PER_DEVICE_HOUR", help="with --search: the price of one device for an hour"
    )
    parser.add_argument(
        "--batch-sizes",
        metavar="N,...",
        help="with --search: sizes of the global batch to compare, by time per example",
    )
    parser.add_argument("--save", metavar="FILE", help="with --search: write the best, for estimator_plan.load_preset")
    parser.add_argument(
        "--programs",
        metavar="DIR",
        type=local_path,
        help="compile once more and keep the program, for runs with RunConfig(compile_cache=DIR)",
    )
    parser.add_argument("--hparams", metavar="a=1,b=[2,3]", help="hyperparameters that replace the file's")
    parser.add_argument(
        "--set",
        dest="settings",
        action="append",
        default=[],
        metavar="run_config.FIELD=VALUE",
        help='a RunConfig field, for example run_config.precision="bfloat16"',
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Runs the command. Returns 3 if the step does not fit."""
    from estimator_core.config import FullySharded
    from estimator_core.plugins import default_plugins
    from estimator_plan import find_topology, keep_program, parse_mesh, plan_training, report
    from estimator_plan.preset import check_place

    if not args.search and any(each is not None for each in (args.save, args.dollars, args.batch_sizes, args.meshes)):
        raise ArgumentError("--save, --dollars, --batch-sizes and --meshes need --search.")
    if args.batch_sizes is not None and args.batch_size is not None:
        raise ArgumentError("--batch-size and --batch-sizes exclude each other.")
    if args.search and (args.mesh is not None or args.fully_sharded):
        raise ArgumentError("--search chooses the mesh and what is split: leave out --mesh and --fully-sharded.")
    if args.save is not None:
        check_place(args.save)  # before the search, which may take long
    open_program = _program_opener()
    if args.file is None and args.model_dir is None:
        raise ArgumentError("give FILE, or with --model-dir a run whose record names one.")
    mesh = None if args.mesh is None else parse_mesh(args.mesh)
    plugins = default_plugins()
    found = find_topology(args.topology, lambda name: plugins.get("backend", name), plugins.names("backend"))
    with tempfile.TemporaryDirectory(prefix="estimator-plan-") as directory:
        experiment = open_program(
            args.file, model_dir=directory, record=args.model_dir, hparams=args.hparams, settings=args.settings
        ).experiment
        batch = experiment.estimator.first_batch(experiment.train_input_fn, experiment.train_hooks)
        if batch is None:
            raise ArgumentError("the training input is empty: the plan needs the shapes of one batch.")
        if args.search:
            return _search(args, experiment.estimator, batch, found)
        rules = experiment.estimator.config.partition_rules
        way: dict[str, Any] = {
            "mesh": mesh,
            "partition_rules": [*rules, (".*", FullySharded())] if args.fully_sharded else rules,
            "batch_size": args.batch_size,
        }
        plan = plan_training(experiment.estimator, batch, found, **way)
        if args.programs is not None:
            keep_program(experiment.estimator, batch, found, args.programs, **way)
    print(json.dumps(plan.to_json(), indent=2) if args.json else report(plan))
    return DOES_NOT_FIT if plan.memory.shortfall else 0


def _search(args: argparse.Namespace, estimator: Any, batch: Any, found: Any) -> int:
    from estimator_plan import keep_program, save_preset, search_plans, search_report

    try:
        sizes = [int(size) for size in (args.batch_sizes or "").split(",") if size]
    except ValueError:
        raise ArgumentError(
            f"--batch-sizes should be whole numbers, for example 128,256, given: {args.batch_sizes}."
        ) from None
    ranked = search_plans(
        estimator,
        batch,
        found,
        batch_sizes=sizes or [size for size in (args.batch_size,) if size is not None],
        meshes=4 if args.meshes is None else args.meshes,
        dollars_per_device_hour=args.dollars,
    )
    if args.save is not None:
        save_preset(ranked[0].preset, args.save)
    if args.programs is not None:
        best = ranked[0]
        way = best.preset.run_config(estimator.config.partition_rules)
        keep_program(estimator, batch, found, args.programs, **way, batch_size=best.plan.examples)
    as_json = [{"preset": each.preset.name, **each.plan.to_json()} for each in ranked]
    print(json.dumps(as_json, indent=2) if args.json else search_report(ranked))
    return DOES_NOT_FIT if ranked[0].plan.memory.shortfall else 0


def _program_opener() -> Callable[..., Any]:
    """Returns the function that reads the user's file.

    Raises:
        ArgumentError: estimator-experiment, which provides the function, is not installed.
    """
    try:
        from estimator_experiment import open_program
    except ModuleNotFoundError as error:
        if error.name != "estimator_experiment":
            raise  # the package is installed, but one of its imports is not
        raise ArgumentError(
            "`estimator plan` reads FILE with estimator-experiment, which is not installed: "
            'pip install "estimator-plan[cli]". From a program, call estimator_plan.plan_training instead.'
        ) from error
    return open_program
