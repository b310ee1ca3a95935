"""Reads exports of canned models with onnxruntime only: `python check_onnx_journeys.py DIRECTORY`."""

import json
import sys

import compare
import journeys
import numpy as np
import onnxruntime
import onnxruntime_extensions


def check(folder):
    (kind,) = paths = journeys.written(folder, "paths")
    path = folder / paths[kind]
    described = json.loads((path / "manifest.json").read_text())["raw_signatures"]["predict"]
    options = onnxruntime.SessionOptions()
    if described["needs"]:
        assert all(one.startswith("onnxruntime-extensions") for one in described["needs"])
        options.register_custom_ops_library(onnxruntime_extensions.get_library_path())
    session = onnxruntime.InferenceSession(str(path / described["program"]), options, ["CPUExecutionProvider"])
    sent = {
        name: np.array(value, object if feature["dtype"] == "string" else feature["dtype"])
        for (name, feature), value in zip(described["inputs"].items(), _rows(folder, described["inputs"]), strict=True)
    }
    names = [output.name for output in session.get_outputs()]
    journeys.agree(dict(zip(names, session.run(names, sent), strict=True)), folder, kind)


def _rows(folder, inputs):
    requests = journeys.written(folder, "requests")["features"]
    return [requests[name] for name in inputs]


if __name__ == "__main__":
    compare.refuse_installed((*compare.ABSENT, "jax", "tensorflow"))
    for one in journeys.folders(sys.argv[1]):
        check(one)
    print(f"onnxruntime {onnxruntime.__version__}, onnxruntime-extensions {onnxruntime_extensions.__version__}")
