"""Runs bundles of canned models with jax only: `python check_stablehlo_journeys.py DIRECTORY`.

A bundle contains the compiled function, and its host part is Python code of this project. So the check passes the
arrays that the host part made from the same rows.
"""

import json
import sys

import compare
import jax
import journeys
import numpy as np
from jax import export, jit
from safetensors.numpy import load_file


def check(folder):
    (kind,) = paths = journeys.written(folder, "paths")
    path = folder / paths[kind]
    manifest = json.loads((path / "manifest.json").read_text())
    described = manifest["signatures"]["predict"]
    run = jit(export.deserialize(bytearray((path / described["program"][-1]["path"]).read_bytes())).call)
    found = jax.device_get(run(load_file(path / manifest["variables"]), dict(np.load(folder / "arrays.npz"))))
    names = described["class_names"]
    for name in ("classes", "all_classes") if names else ():
        found[name] = np.array(names, object)[found[name]]
    journeys.agree(found, folder, kind)


if __name__ == "__main__":
    compare.refuse_installed((*compare.ABSENT, "tensorflow", "onnxruntime"))
    for one in journeys.folders(sys.argv[1]):
        check(one)
    print(f"jax {jax.__version__}")
