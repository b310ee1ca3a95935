"""Reads exports with onnxruntime only: `python check_onnx.py DIRECTORY`."""

import json
import sys
from pathlib import Path

import compare
import numpy as np
import onnxruntime


def load(path):
    program = json.loads((path / "manifest.json").read_text())["signatures"]["serving_default"]["program"]
    session = onnxruntime.InferenceSession(str(path / program), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return lambda **inputs: dict(zip(names, session.run(names, dict(inputs)), strict=True))


def check_raw(folder):
    """Feeds raw strings to the graph that contains the host part."""
    path = folder / (folder / "path.txt").read_text()
    described = json.loads((path / "manifest.json").read_text())["raw_signatures"]["predict"]
    session = onnxruntime.InferenceSession(str(path / described["program"]), providers=["CPUExecutionProvider"])
    sent = dict(np.load(folder / "inputs.npz"))
    sent = {name: value.astype(object) if value.dtype.kind == "U" else value for name, value in sent.items()}
    names = [output.name for output in session.get_outputs()]
    found, expected = dict(zip(names, session.run(names, sent), strict=True)), np.load(folder / "expected.npz")
    assert set(names) == set(expected.files)
    greatest = 0.0
    for name, value in found.items():
        if value.dtype == object:
            assert value.tolist() == expected[name].tolist(), name
        else:
            greatest = max(greatest, float(np.abs(value.astype(np.float64) - expected[name]).max()))
    assert greatest <= compare.TOLERANCE, f"raw rows differ by {greatest}"
    print(f"raw rows: {len(sent['city'])} rows, greatest difference {greatest:.1e}, classes equal as strings")


if __name__ == "__main__":
    compare.check(sys.argv[1], load, (*compare.ABSENT, "jax", "tensorflow"))
    check_raw(Path(sys.argv[1], "raw", "journey"))
    print(f"onnxruntime {onnxruntime.__version__}")
