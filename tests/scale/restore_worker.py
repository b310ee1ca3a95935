"""Restores a checkpoint without training: `restore_worker.py MODEL_DIR DEVICES OUT`, in one process or several.

It saves the checkpoint again with the same step, so that the directory then holds the files of these devices.
"""

import json
import sys
from pathlib import Path

import models
import numpy as np
from train_worker import make_estimator

import estimator_core as ec
from estimator_core._loop.device_state import whole_on_host


class Look(ec.Hook):
    """Reads the state before the first step, and stops there."""

    def after_create(self, run: ec.Run) -> None:
        state = run.live.ready  # type: ignore[attr-defined]
        self.step = run.step
        self.seen = {n: whole_on_host(v) for n, v in sorted({**state.variables, **state.model_state}.items())}
        run.request_stop("seen")


def main(model_dir: str, devices: int, out: str) -> None:
    estimator = make_estimator({"model_dir": model_dir, "mesh": {"data": devices}, "rules": "full"})
    processes = estimator._devices.processes
    look = Look()
    newest = Path(model_dir) / "checkpoints" / "12" / "manifest.json"
    if processes.count == 1:
        estimator.train(models.train_input(32), hooks=[look], steps=1)
    else:
        estimator.train(models.train_input(32 // processes.count), hooks=[look], steps=1)
    assert newest.exists()
    if processes.index == 0:
        np.savez(f"{out}.npz", **look.seen)
        print(json.dumps({"step": look.step, "devices": devices}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
