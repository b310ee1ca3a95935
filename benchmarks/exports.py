"""Answers of one model, with a row or a batch per call: `predictor()`, its exports, and onnxruntime, MLP 64-128-128-10.

    uv run python benchmarks/exports.py [--rounds 15] [--calls 1000] [--batch 256] [--busy N ...] [--json FILE]

The StableHLO export is loaded by `ec.export.load`. The ONNX export of the same estimator is run by onnxruntime with two
threads, if this environment has `estimator-exporters[onnx]`; else it is skipped by name. Answers are compared first.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from _load import add_options, compare_beside, loads_of
from _mlp_model import arrays, trained
from _report import report, write
from mlp import WIDTHS

import estimator_core as ec

Answer = Callable[[np.ndarray], Mapping[str, Any]]
ONNX = "onnxruntime"


def answering() -> dict[str, Answer]:
    """Returns the ways to get predictions of one trained model."""
    estimator = trained()
    receiver_fn = ec.export.build_raw_serving_input_receiver_fn({"x": ec.export.Feature((None, WIDTHS[0]), "float32")})
    place = tempfile.mkdtemp(prefix="bench-exports-")
    signature = ec.export.load(estimator.export_saved_model(place, receiver_fn)).signatures["serving_default"]
    predictor = estimator.predictor()
    found: dict[str, Answer] = {
        "loaded export": lambda x: signature(x=x),
        "predictor()": lambda x: predictor({"x": x}),
    }
    try:
        import jax2onnx as jax2onnx
        import onnxruntime
    except ImportError as error:
        print(f"{ONNX} is left out: {error}")
        return found
    exported = Path(estimator.export_saved_model(place, receiver_fn, format="onnx"))
    described = json.loads((exported / "manifest.json").read_text())["signatures"]["serving_default"]
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    session: Any = onnxruntime.InferenceSession(str(exported / described["program"]), options)
    (output,) = (each.name for each in session.get_outputs())
    (asked,) = (each.name for each in session.get_inputs())
    found[ONNX] = lambda x: {"logits": session.run([output], {asked: x})[0]}
    return found


def calls(answer: Answer, rows: int, count: int) -> Callable[[], None]:
    """Returns a function that computes one answer after the other."""
    x = arrays(64 * rows)[0]["x"].reshape(64, rows, WIDTHS[0])

    def run() -> None:
        for index in range(count):
            answer(x[index % 64])

    return run


def main() -> None:
    """Runs the comparison."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--json", type=Path)
    add_options(parser)
    args = parser.parse_args()
    answers = answering()
    x = arrays(3)[0]["x"]
    expected = answers["predictor()"](x)["logits"]
    for name, answer in answers.items():
        np.testing.assert_allclose(answer(x)["logits"], expected, rtol=1e-4, atol=1e-5, err_msg=name)
    tables: list[dict[str, Any]] = []
    for rows, title in ((1, "One row"), (args.batch, f"A batch of {args.batch}")):
        contestants = {name: calls(answer, rows, args.calls) for name, answer in answers.items()}
        pairs = [("predictor()", "loaded export"), ("predictor()", ONNX), ("loaded export", ONNX)]
        results = compare_beside(loads_of(args), contestants, rounds=args.rounds, pairs=pairs)
        tables.append(report(title, results, steps=args.calls))
    write(args.json, *tables)


if __name__ == "__main__":
    main()
