"""Reads exports with onnxruntime alone: `python check_onnx.py DIRECTORY`."""

import json
import sys

import compare
import onnxruntime


def load(path):
    program = json.loads((path / "manifest.json").read_text())["signatures"]["serving_default"]["program"]
    session = onnxruntime.InferenceSession(str(path / program), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return lambda **inputs: dict(zip(names, session.run(names, dict(inputs)), strict=True))


if __name__ == "__main__":
    compare.check(sys.argv[1], load, (*compare.ABSENT, "jax", "tensorflow"))
    print(f"onnxruntime {onnxruntime.__version__}")
