"""The actions of the command on an export: predict texts, or serve it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from estimator_core.errors import ArgumentError

SEPARATOR = "|||"


def newest_export(model_dir: str) -> str:
    """Returns the newest export of a run: the one with the best evaluation if there is one, otherwise the last one.

    Raises:
        ArgumentError: the run has no export.
    """
    from estimator_core.export import latest_export

    for name in ("best", "final"):
        found = latest_export(Path(model_dir) / "export" / name)
        if found is not None:
            return found
    raise ArgumentError(f"There is no export in {model_dir}/export: run with --data first (needs estimator-exporters).")


def parts_of(texts: Sequence[str], wanted: int) -> list[list[str]]:
    """Returns the parts of each text: one, or two of a pair.

    Raises:
        ArgumentError: a text has another number of parts.
    """
    pairs = [text.split(SEPARATOR) for text in texts]
    for text, parts in zip(texts, pairs, strict=True):
        if len(parts) != wanted:
            raise ArgumentError(f"--text {text!r}: the model reads {wanted} text(s), separated by {SEPARATOR}.")
    return pairs


def predict_texts(model_dir: str, texts: Sequence[str]) -> dict[str, Any]:
    """Prints a prediction for each text, and returns the predictions for JSON.

    Tokenizer, weights and labels are those of the newest export.
    """
    import estimator_core as ec

    signatures = ec.export.load(newest_export(model_dir)).raw_signatures
    signature = signatures["serving_default"]
    pairs = parts_of(texts, len(signature.inputs))
    columns = {
        name: np.array([parts[index].strip() for parts in pairs], object)
        for index, name in enumerate(sorted(signature.inputs))
    }
    found = signature(**columns)
    predicted: list[dict[str, Any]] = []
    for row, text in enumerate(texts):
        if "outputs" in found:
            value = float(np.ravel(found["outputs"][row])[0])
            print(f"{value:.4f}\t{text}")
            predicted.append({"text": text, "value": value})
        else:
            name, score = str(np.ravel(found["classes"][row])[0]), float(np.max(found["scores"][row]))
            print(f"{name}\t{score:.4f}\t{text}")
            predicted.append({"text": text, "class": name, "score": score})
    return {"texts": predicted}


def serve(model_dir: str, port: int) -> int:
    """Serves the exports of a run until a signal stops it."""
    from estimator_core.cli import main

    return main(["serve", str(Path(newest_export(model_dir)).parent), "--port", str(port)])
