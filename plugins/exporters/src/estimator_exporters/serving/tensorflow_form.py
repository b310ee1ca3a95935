"""The REST form of TensorFlow Serving: `:predict` in rows and columns, `:classify` and `:regress`.

Source: tensorflow.org, "TensorFlow Serving, RESTful API", and `json_tensor.cc` of TensorFlow Serving for the rest.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from estimator_core.export import Feature
from estimator_exporters.bundle.object_arrays import objects
from estimator_exporters.serving.calls import Arrays, Call, Form
from estimator_exporters.serving.datatypes import datatype, encoded, from_json, json_nested, unnested
from estimator_exporters.serving.json_text import read_json
from estimator_exporters.serving.models import ServedModel
from estimator_exporters.serving.refusals import BadRequestError
from estimator_exporters.serving.tensorflow_examples import features_of, from_base64

VERBS = ("predict", "classify", "regress")
_JSON = {"content-type": "application/json"}
Answer = Callable[[str, Arrays], tuple[bytes, Mapping[str, str]]]


def tensorflow_form(name: str, verb: str) -> Form:
    """Returns the form of `POST /v1/models/NAME:VERB`."""

    def read(
        body: bytes | bytearray,
        header_length: str | None,
        find: Callable[[str], ServedModel],
        *,
        values: int,
        charge: Callable[[int], None],
    ) -> Call:
        content = read_json(body, values=values, charge=charge, literals=True)
        if not isinstance(content, dict):
            raise BadRequestError("the request must be a JSON object")
        own = _model_name(name, content)
        model = find(own)
        if verb == "predict":
            inputs, answer = _predict(model, content)
        else:
            inputs = {
                key: to_array(values, model.inputs[key], f"feature {key!r}")
                for key, values in features_of(model, content, verb).items()
            }
            answer = _CLASSIFY_AND_REGRESS[verb]
        return Call(name=own, inputs=inputs, answer=answer)

    return read


def to_array(data: Any, feature: Feature, what: str) -> np.ndarray:
    """Returns an array from nested lists. `{"b64": ...}` is bytes, and null is a missing value: NaN or the empty text.

    Raises:
        BadRequestError: the lists are nested unevenly, or contain values that do not match the feature.
    """
    shape: list[int] = []
    flat = data if isinstance(data, list) else [data]
    if isinstance(data, list):
        shape.append(len(flat))
        while flat and isinstance(flat[0], list):
            size = len(flat[0])
            if not all(isinstance(row, list) and len(row) == size for row in flat):
                raise BadRequestError(f"{what} must be nested evenly")
            shape.append(size)
            flat = unnested(flat)
    kind = datatype(feature.dtype)
    if kind == "BYTES":
        flat = [b"" if value is None else from_base64(value, what) for value in flat]
    elif kind.startswith("FP") and None in flat:
        flat = [math.nan if value is None else value for value in flat]
    return from_json(kind, flat, tuple(shape), what, literals=True)


def _model_name(name: str, content: Mapping[str, Any]) -> str:
    signature = content.get("signature_name") or "serving_default"
    if not isinstance(signature, str):
        raise BadRequestError("signature_name must be a string")
    return name if signature == "serving_default" else f"{name}:{signature}"


def _predict(model: ServedModel, content: Mapping[str, Any]) -> tuple[Arrays, Answer]:
    if ("instances" in content) == ("inputs" in content):
        raise BadRequestError("the request must have either 'instances' or 'inputs'")
    if "inputs" in content:
        found = content["inputs"]
        named = isinstance(found, dict) and not _is_base64(found)
        columns = found if named else {_only(model): found}
        return _arrays(model, columns, "input"), _columns
    rows = content["instances"]
    if not isinstance(rows, list) or not rows:
        raise BadRequestError("instances must be a list with at least one value")
    if not isinstance(rows[0], dict) or _is_base64(rows[0]):
        return _arrays(model, {_only(model): rows}, "input"), _rows
    names = rows[0].keys()
    for number, row in enumerate(rows):
        if not isinstance(row, dict) or row.keys() != names:
            raise BadRequestError(f"instance {number} must be an object with the names of the first, {sorted(names)}")
    return _arrays(model, {key: [row[key] for row in rows] for key in names}, "input"), _rows


def _arrays(model: ServedModel, columns: Mapping[str, Any], what: str) -> Arrays:
    unknown = sorted(columns.keys() - model.inputs.keys())
    if unknown:
        raise BadRequestError(f"unknown inputs {unknown}; the inputs are {sorted(model.inputs)}")
    return {key: to_array(values, model.inputs[key], f"{what} {key!r}") for key, values in columns.items()}


def _only(model: ServedModel) -> str:
    if len(model.inputs) != 1:
        raise BadRequestError(f"the values must be named: the inputs are {sorted(model.inputs)}")
    return next(iter(model.inputs))


def _is_base64(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == {"b64"}


def _columns(version: str, outputs: Arrays) -> tuple[bytes, Mapping[str, str]]:
    if len(outputs) == 1:
        ((name, array),) = outputs.items()
        return f'{{"outputs":{_shown(name, array)}}}'.encode(), _JSON
    named = ",".join(f"{json.dumps(name)}:{_shown(name, array)}" for name, array in outputs.items())
    return f'{{"outputs":{{{named}}}}}'.encode(), _JSON


def _rows(version: str, outputs: Arrays) -> tuple[bytes, Mapping[str, str]]:
    sizes = {name: array.shape[0] if array.ndim else None for name, array in outputs.items()}
    if len(set(sizes.values())) != 1 or None in sizes.values():
        raise BadRequestError(f"the outputs have no common first axis, {sizes}; ask in columns, with 'inputs'")
    if len(outputs) == 1:
        ((name, array),) = outputs.items()
        return f'{{"predictions":{_shown(name, array)}}}'.encode(), _JSON
    keys = {name: json.dumps(name) for name in outputs}
    rows = (
        f"{{{','.join(f'{keys[name]}:{_shown(name, array[row])}' for name, array in outputs.items())}}}"
        for row in range(next(iter(outputs.values())).shape[0])
    )
    return f'{{"predictions":[{",".join(rows)}]}}'.encode(), _JSON


def _shown(name: str, values: Any) -> str:
    array = np.asarray(values)
    if name.endswith("_bytes") and datatype(array.dtype) == "BYTES":
        named = [{"b64": base64.b64encode(encoded(value)).decode()} for value in array.reshape(-1).tolist()]
        return json.dumps(objects(named).reshape(array.shape).tolist())
    return json_nested(array, f"output {name!r}")


def _classified(version: str, outputs: Arrays) -> tuple[bytes, Mapping[str, str]]:
    scores, classes = outputs.get("scores"), outputs.get("classes")
    known = scores if scores is not None else classes
    assert known is not None  # the request was checked
    flat_scores = np.zeros(known.shape) if scores is None else scores
    labels = np.full(known.shape, "", object) if classes is None else classes
    rows = [
        [[_label(label), score] for label, score in zip(row_labels, row_scores, strict=True)]
        for row_labels, row_scores in zip(labels.tolist(), _finite(flat_scores), strict=True)
    ]
    return json.dumps({"results": rows}, allow_nan=False).encode(), _JSON


def _regressed(version: str, outputs: Arrays) -> tuple[bytes, Mapping[str, str]]:
    return f'{{"results":{json_nested(outputs["outputs"].reshape(-1), "the regression")}}}'.encode(), _JSON


def _label(label: Any) -> str:
    return label.decode() if isinstance(label, bytes) else str(label)


def _finite(scores: np.ndarray) -> list[list[Any]]:
    return json.loads(json_nested(scores, "the scores"))


_CLASSIFY_AND_REGRESS: Mapping[str, Answer] = {"classify": _classified, "regress": _regressed}
