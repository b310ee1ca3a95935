"""Compile the training step of an experiment for devices that are not there.

FILE is as for `estimator run`. Prints, for one step: memory of each device against what it has, whether it fits and
what to change, operations, an estimate of the time from peak figures, and the collectives with their bytes. Nothing is
trained or written. TPU topologies need estimator-backends-tpu[tpu], GPU topologies estimator-backends-gpu[cuda]; no
device is needed.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from typing import Any

from estimator_core.errors import ArgumentError

DOES_NOT_FIT = 3


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `estimator plan`."""
    parser.add_argument(
        "file", metavar="FILE[:FUNCTION]", help="a Python file, and the function that makes the Experiment"
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
    parser.add_argument("--hparams", default="", metavar="a=1,b=[2,3]", help="hyperparameters that replace the file's")
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
    """Runs the command; 3: it does not fit."""
    from estimator_core._cli.program import load_program
    from estimator_core._plugins import default_plugins
    from estimator_core.config import FullySharded
    from estimator_core.plan import find_topology, parse_mesh, plan_training, report

    mesh = None if args.mesh is None else parse_mesh(args.mesh)
    plugins = default_plugins()
    found = find_topology(args.topology, lambda name: plugins.get("backend", name), plugins.names("backend"))
    program = load_program(args.file)
    with tempfile.TemporaryDirectory(prefix="estimator-plan-") as directory:
        config = program.run_config(directory, args.settings)
        experiment = program.experiment_fn(config, program.hparams(args.hparams))
        rules = experiment.estimator.config.partition_rules
        plan = plan_training(
            experiment.estimator,
            first_batch(experiment),
            found,
            mesh=mesh,
            partition_rules=[*rules, (".*", FullySharded())] if args.fully_sharded else rules,
            batch_size=args.batch_size,
        )
    print(json.dumps(plan.to_json(), indent=2) if args.json else report(plan))
    return DOES_NOT_FIT if plan.memory.shortfall else 0


def first_batch(experiment: Any) -> Any:
    """The first training batch of an experiment, after its hooks have made the input ready.

    Raises:
        ArgumentError: the input is empty.
    """
    from pathlib import Path

    from estimator_core._inputs import open_input
    from estimator_core._loop.device_state import DeviceState
    from estimator_core._loop.run import LoopRun
    from estimator_core._summaries import NO_SUMMARIES
    from estimator_core.hooks import Hook
    from estimator_core.modes import ModeKeys

    estimator = experiment.estimator
    run = LoopRun(
        mode=ModeKeys.TRAIN,
        estimator=estimator,
        config=estimator.config,
        params=estimator.params,
        model_dir=Path(estimator.model_dir),
        summaries=NO_SUMMARIES,
        live=DeviceState(),
    )
    prepare: Any = estimator._transformed  # pyright: ignore[reportPrivateUsage]
    source = open_input(
        prepare(experiment.train_input_fn), mode=ModeKeys.TRAIN, params=estimator.params, config=estimator.config
    )
    try:
        for hook in experiment.train_hooks:
            if type(hook).begin is not Hook.begin:
                hook.begin(run)
        batch = next(source, None)
    finally:
        source.close()
    if batch is None:
        raise ArgumentError("the training input is empty: the plan needs the shapes of one batch.")
    return batch
