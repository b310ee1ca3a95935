"""Trains an example repeatedly, each time in a separate process: `python example_server.py EXAMPLE`.

Shared modules are imported once, and each process is forked before jax uses a device. A line of standard input requests
a run, `{"model_dir", "hparams", "steps_per_dispatch", "trace", "moment"}`. A line of standard output returns its
status. EXAMPLE has an `experiment_fn`, or a `train(config, hparams, hooks)`.
"""

import importlib
import importlib.util
import json
import os
import sys
import traceback
import warnings
from functools import partial
from pathlib import Path
from typing import Any

from phases import Phases, Steps

import estimator_core as ec
from estimator_core.errors import PreemptedError

SAVED_AND_RESUMABLE = 75
#: The modules that a run imports later.
IMPORTS = (
    "estimator_core._checkpoint.orbax_io",
    "estimator_core._loop.export_call",
    "estimator_exporters.stablehlo",
    "flax.nnx",
    "orbax.checkpoint",
    "sklearn.datasets",
    "tensorboardX",
)


def train(example: Any, asked: dict[str, Any]) -> None:
    """Trains one run of the example."""
    phases = Phases(Path(asked["trace"]), asked["moment"])
    phases.install()
    hparams = ec.HParams(**{**example.HPARAMS.values(), **asked["hparams"]})
    config = ec.RunConfig(
        model_dir=asked["model_dir"],
        tf_random_seed=1,
        steps_per_dispatch=asked["steps_per_dispatch"],
        save_summary_steps=5,
        log_step_count_steps=10,
    )

    hooks = [Steps(phases, every=5)]
    getattr(example, "train", partial(train_experiment, example))(config, hparams, hooks)
    phases.begin("shutdown")


def train_experiment(example: Any, config: ec.RunConfig, hparams: Any, hooks: list[Any]) -> None:
    """Trains by an example's `experiment_fn`."""

    def experiment_fn(run_config: Any, params: Any) -> Any:
        experiment = example.experiment_fn(run_config, params)
        experiment.extend_train_hooks(hooks)
        return experiment

    ec.learn_runner.run(experiment_fn, run_config=config, hparams=hparams)


def fork(example: Any, asked: dict[str, Any]) -> int:
    """Runs it in a child and returns the exit status, which is negative for a signal."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # jax warns of forks after the start of its threads, but none has started
        child = os.fork()
    if child == 0:
        log = os.open(f"{asked['trace']}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(log, 1)
        os.dup2(log, 2)
        status = 0
        try:
            train(example, asked)
        except PreemptedError:
            traceback.print_exc()
            status = SAVED_AND_RESUMABLE
        except BaseException:
            traceback.print_exc()
            status = 1
        sys.exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main(path: str) -> None:
    """Reads requests and answers them until standard input ends."""
    for name in IMPORTS:
        importlib.import_module(name)
    spec = importlib.util.spec_from_file_location("example", path)
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    print("ready", flush=True)
    while line := sys.stdin.readline():
        print(fork(example, json.loads(line)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
