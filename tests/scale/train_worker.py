"""One process of a run: `train_worker.py SETTINGS_JSON`. It writes its results to `<out>.<process>.json` and `.npz`.

Settings: model_dir, out, global_batch, steps, mesh, rules ("full", "zero1", "tensor" or null), evaluate (batch of the
last evaluation), and `config` (further fields of RunConfig).
"""

import json
import logging
import sys
from pathlib import Path
from typing import Any

import jax
import models
import numpy as np

import estimator_core as ec
from estimator_core._loop.device_state import whole_on_host
from estimator_core._loop.resuming import input_context

TENSOR = [(".*layer_0/kernel", (None, "model")), (".*layer_0/bias", ("model",)), (".*layer_1/kernel", ("model", None))]
RULES = {
    None: [],
    "full": [(".*", ec.FullySharded())],
    "zero1": [(".*", ec.FullySharded(slots_only=True))],
    "tensor": TENSOR,
    "mixed": [
        (".*layer_0/kernel", ec.FullySharded(base=(None, "model"))),
        (".*layer_1/kernel", ec.FullySharded(base=("model",))),
        (".*", ec.FullySharded()),
    ],
}


class Losses(ec.Hook):
    """Records the loss of every step and calls `at_step`."""

    def __init__(self, at_step: Any = None) -> None:
        self.losses: list[float] = []
        self._at_step = at_step

    def next_step(self, step: int) -> int:
        return step + 1

    def after_step(self, run: Any, step: int, out: Any) -> None:
        self.losses.extend(np.atleast_1d(out.all("loss")).tolist())
        if self._at_step is not None:
            self._at_step(run, step)


def make_estimator(settings: dict[str, Any]) -> ec.Estimator:
    config = ec.RunConfig(
        model_dir=settings["model_dir"],
        mesh=settings.get("mesh"),
        partition_rules=RULES[settings.get("rules")],
        **{"tf_random_seed": 1, "save_checkpoints_steps": 5, "log_step_count_steps": None, "save_summary_steps": None}
        | settings.get("config", {}),
    )
    return ec.Estimator(
        models.classifier,
        config=config,
        params={"width": settings.get("width", 32), "dropout": settings.get("dropout", False)},
    )


def run(settings: dict[str, Any], at_step: Any = None) -> dict[str, Any]:
    """Trains and evaluates, and returns the results."""
    estimator = make_estimator(settings)
    devices_of, live = estimator._devices, estimator._state
    parts = input_context(devices_of).num_input_pipelines
    hook = Losses(at_step)
    estimator.train(
        models.train_input(settings.get("global_batch", 32) // parts), hooks=[hook], max_steps=settings["steps"]
    )
    state = live.ready
    metrics = estimator.evaluate(models.eval_input(settings.get("evaluate", 48) // parts))
    devices = dict.fromkeys(devices_of.placement.mesh.local_devices, 0)
    for leaf in jax.tree.leaves(state):
        for shard in leaf.addressable_shards:
            devices[shard.device] += shard.data.nbytes
    result = {
        "losses": hook.losses,
        "metrics": metrics,
        "bytes": list(devices.values()),
        "whole": sum(leaf.nbytes for leaf in jax.tree.leaves(state)),
        "process": devices_of.processes.index,
        "step": live.step,
        "seed": np.asarray(state.clock.addressable_data(0))[2:].tolist(),
    }
    values = {**state.variables, **state.model_state}
    out = settings.get("out")
    if out:
        out = f"{out}.{devices_of.processes.index}"
        Path(f"{out}.json").write_text(json.dumps(result))
        np.savez(
            f"{out}.npz",
            **{n: whole_on_host(value) for n, value in sorted(values.items())},
        )
    return result


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(message)s")
    logging.getLogger("estimator_core").setLevel(logging.INFO)
    run(json.loads(sys.argv[1]))
