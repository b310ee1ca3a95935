"""Reads the exports of the matrix without this framework: `python read.py FORMAT DIRECTORY [SECONDS]`.

It needs numpy and a library for the format: tensorflow, onnxruntime, or jax with safetensors. It writes a JSON file to
the folder of each row: the largest difference of each export, mode and signature, or the error. Existing results of
this version of the reader stay, and no row begins after the given seconds.
"""

import importlib.util
import json
import os
import sys
import time
from pathlib import Path

import numpy as np

ABSENT = ("estimator_core", "estimator_exporters", "flax", "optax", "orbax")
TOLERANCES = {"bfloat16": 2e-2, "float16": 5e-3}
TOLERANCE = 1e-5
#: The exit code if rows are missing, as in the writer.
UNFINISHED = 75


def stablehlo(path):
    """Follows the recipe of docs/export.md."""
    from jax import device_get, export, jit
    from safetensors.numpy import load_file

    manifest = json.loads((path / "manifest.json").read_text())
    variables = load_file(path / manifest["variables"])

    def run(name, folder):
        inputs = arrays(folder, "arrays")
        programs = {one["batch"]: one["path"] for one in manifest["signatures"][name]["program"]}
        program = programs.get(None) or programs[len(next(iter(inputs.values())))]
        called = jit(export.deserialize(bytearray((path / program).read_bytes())).call)
        return device_get(called(variables, inputs)), arrays(folder, "given")

    return run


def saved_model(path):
    import tensorflow as tf

    module = tf.saved_model.load(str(path))

    def run(name, folder):
        signature = module.signatures[name]
        specs = signature.structured_input_signature[1]
        sent = arrays(folder, "arrays" if name in ("eval", "train") else "raw")
        if set(specs) == {"inputs"} and len(sent) == 1:  # a classifier takes one array of text by this name
            sent = {"inputs": next(iter(sent.values()))}
        inputs = {key: tf.constant(sent[key], specs[key].dtype) for key in specs}
        found = {key: value.numpy() for key, value in signature(**inputs).items()}
        return found, arrays(folder, "shown")

    return run


def onnx(path):
    import onnxruntime

    manifest = json.loads((path / "manifest.json").read_text())
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    if any(raw["needs"] for raw in manifest.get("raw_signatures", {}).values()):
        options.register_custom_ops_library(importlib.import_module("onnxruntime_extensions").get_library_path())

    def run(name, folder):
        raw = manifest.get("raw_signatures", {}).get(name)
        program = manifest["signatures"][name]["program"] if raw is None else raw["program"]
        session = onnxruntime.InferenceSession(str(path / program), options, providers=["CPUExecutionProvider"])
        sent = arrays(folder, "arrays" if raw is None else "raw")
        sent = {
            key: np.char.decode(value, "utf-8").astype(object) if value.dtype.kind == "S" else value
            for key, value in sent.items()
        }
        kinds = {one.name: one.type for one in session.get_inputs()}
        names = [one.name for one in session.get_outputs()]
        found = session.run(names, {key: value for key, value in sent.items() if key in kinds})
        return dict(zip(names, found, strict=True)), arrays(folder, "given" if raw is None else "shown")

    return run


READERS = {"stablehlo": stablehlo, "saved_model": saved_model, "onnx": onnx}


def arrays(folder, what):
    return dict(np.load(folder / f"{what}.npz"))


def difference(found, expected):
    """Returns the largest difference as a share of the largest value. Text must be equal."""
    assert set(found) == set(expected), f"outputs {sorted(found)} instead of {sorted(expected)}"
    greatest = 0.0
    for name, wanted in expected.items():
        value = np.asarray(found[name])
        assert value.shape == wanted.shape, f"{name} has shape {value.shape} instead of {wanted.shape}"
        if wanted.dtype.kind == "S":
            texts = [one if isinstance(one, bytes) else one.encode() for one in value.reshape(-1).tolist()]
            assert texts == wanted.reshape(-1).tolist(), f"{name} is {texts[:3]} instead of {wanted.tolist()[:3]}"
            continue
        narrow = TOLERANCES.get(str(value.dtype), TOLERANCE)
        value, wanted = value.astype(np.float64), wanted.astype(np.float64)
        assert np.array_equal(np.isfinite(value), np.isfinite(wanted)), f"{name} is finite in other places"
        largest = max(1.0, float(np.max(np.abs(wanted), initial=0.0, where=np.isfinite(wanted))))
        apart = np.abs(np.nan_to_num(value, posinf=0, neginf=0) - np.nan_to_num(wanted, posinf=0, neginf=0))
        share = float(np.max(apart, initial=0.0)) / largest
        assert share <= narrow, f"{name} differs by {share:.1e}"
        greatest = max(greatest, share)
    return greatest


def read(format_name, folder, cell):
    export = folder / cell["name"] / cell["folder"]
    run = READERS[format_name](export / (export / "path.txt").read_text())
    signatures = sorted(path for path in (folder / cell["name"] / "expected" / cell["mode"]).iterdir() if path.is_dir())
    assert signatures, "no signature to try"
    return max(difference(*run(signature.name, signature)) for signature in signatures)


def read_row(format_name, directory, cells):
    found = []
    for cell in cells:
        if cell["format"] != format_name or cell["state"] != "works":
            continue
        try:
            found.append({**cell, "difference": read(format_name, directory, cell)})
        except Exception as error:
            found.append({**cell, "state": "failed", "words": f"{type(error).__name__}: {error}"})
    return found


def main(format_name, directory, seconds):
    present = [name for name in ABSENT if importlib.util.find_spec(name) is not None]
    assert not present, f"this environment was to lack {present}"
    module = {"stablehlo": "jax", "saved_model": "tensorflow", "onnx": "onnxruntime"}[format_name]
    reader = f"{module} {importlib.import_module(module).__version__}"
    until, missing, cells = time.monotonic() + seconds, 0, []
    for path in sorted(directory.glob("*/cells.json")):
        result = path.with_name(f"read_{reader.replace(' ', '_')}.json")
        if not result.is_file():
            if time.monotonic() >= until:
                missing += 1
                continue
            row = read_row(format_name, directory, json.loads(path.read_text()))
            unfinished = result.with_suffix(".unfinished")
            unfinished.write_text(json.dumps({"reader": reader, "format": format_name, "cells": row}, indent=1))
            unfinished.rename(result)
        cells += json.loads(result.read_text())["cells"]
    failed = [cell for cell in cells if cell["state"] == "failed"]
    for cell in failed:
        print(f"{cell['name']} {format_name} {cell['mode']}: {cell['words'][:600]}", file=sys.stderr)
    again = f", {missing} rows not yet: call it again" if missing else ""
    print(f"{reader}: {len(cells) - len(failed)} read, {len(failed)} failed{again}", flush=True)
    return UNFINISHED if missing else int(bool(failed))


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    sys.exit(main(sys.argv[1], Path(sys.argv[2]), float((sys.argv[3:] or ["inf"])[0])))
