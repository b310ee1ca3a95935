"""Placements in one process with 8 devices: `devices_worker.py FOLDER CASE...`. It prints the results of each case."""

import functools
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
from train_worker import make_estimator, run

from estimator_core._model.initialize import _first_values

CASES: dict[str, dict[str, Any]] = {
    "one": {},
    "data_2": {"mesh": {"data": 2}},
    "full_8": {"mesh": {"data": 8}, "rules": "full"},
    "zero1_8": {"mesh": {"data": 8}, "rules": "zero1"},
    "tensor_4": {"mesh": {"model": 4}, "rules": "tensor"},
    "mixed": {"mesh": {"data": 2, "fsdp": 2, "model": 2}, "rules": "mixed"},
    "float16_full_4": {"mesh": {"data": 4}, "rules": "full", "config": {"precision": "float16"}},
    "float16": {"config": {"precision": "float16"}},
    "accumulated": {"config": {"accumulate_steps": 2}},
    "accumulated_4": {"mesh": {"data": 4}, "config": {"accumulate_steps": 2}},
    "four_a_dispatch": {"mesh": {"data": 2}, "config": {"steps_per_dispatch": 4}},
}


def initial_memory(folder: Path, devices: int) -> dict[str, int]:
    """Returns the bytes of the initial values of a wide model that a device holds, and the further bytes needed to make
    them.
    """
    settings = {"model_dir": str(folder / "wide"), "mesh": {"data": devices}, "rules": "full", "width": 512}
    estimator = make_estimator(settings)
    devices_of = estimator._devices
    features, labels = {"x": jax.ShapeDtypeStruct((32, 16), np.float32)}, jax.ShapeDtypeStruct((32,), np.int32)
    batch: Any = SimpleNamespace(features=features, labels=labels, weights=None)
    specs = estimator._programs.discovery(devices_of, "train", batch).specs
    compute = jax.jit(functools.partial(_first_values, specs), out_shardings=devices_of.placement.variables(specs))
    used = compute.lower(jax.ShapeDtypeStruct((2,), np.uint32)).compile().memory_analysis()
    whole = sum(spec.size * spec.dtype.itemsize for spec in specs.values())
    return {"held": used.output_size_in_bytes, "besides": used.temp_size_in_bytes, "whole": whole}


def main(folder: Path, *names: str) -> None:
    results = {}
    for name in names:
        out = str(folder / name)
        results[name] = run({"model_dir": str(folder / f"{name}_dir"), "out": out, "steps": 12, **CASES[name]})
    print(json.dumps({"cases": results, "initial": [initial_memory(folder, devices) for devices in (1, 8)]}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
