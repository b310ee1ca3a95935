"""Converts the examples of `:classify` and `:regress` to inputs of a model: features by name, or tf.Example records."""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Mapping
from typing import Any

import estimator_core as ec
from estimator_exporters.serving.models import ServedModel
from estimator_exporters.serving.refusals import BadRequestError

_OUTPUTS = {"classify": ("scores", "classes"), "regress": ("outputs",)}


def features_of(model: ServedModel, content: Mapping[str, Any], verb: str) -> Mapping[str, Any]:
    """Returns the inputs by name, in nested lists.

    Args:
        model: the model whose inputs are built.
        content: the content of the request.
        verb: "classify" or "regress".

    Raises:
        BadRequestError: the signature lacks the outputs for the verb, their shapes are unsuitable, or examples are
            missing or not alike.
    """
    if not any(name in model.outputs for name in _OUTPUTS[verb]):
        raise BadRequestError(
            f"the signature has the outputs {sorted(model.outputs)}, and {verb} needs {' or '.join(_OUTPUTS[verb])}; "
            "name another with signature_name"
        )
    shapes = {name: model.outputs[name].shape for name in _OUTPUTS[verb] if name in model.outputs}
    if verb == "classify" and (len(set(shapes.values())) > 1 or any(len(shape) != 2 for shape in shapes.values())):
        raise BadRequestError(
            f"the outputs have the shapes {shapes}, and classify needs one column for each class; use :predict"
        )
    examples, context = content.get("examples"), content.get("context", {})
    if not isinstance(examples, list) or not examples or not all(isinstance(one, dict) for one in examples):
        raise BadRequestError("examples must be a list with at least one object")
    if not isinstance(context, dict):
        raise BadRequestError("context must be an object")
    whole: list[dict[str, Any]] = [{**context, **one} for one in examples]
    if _takes_records(model):
        return {next(iter(model.inputs)): [_record(one) for one in whole]}
    return {name: [_feature(one, number, name, model) for number, one in enumerate(whole)] for name in model.inputs}


def _takes_records(model: ServedModel) -> bool:
    examples = model.inputs.get("examples")
    return len(model.inputs) == 1 and examples is not None and examples.dtype == "string" and examples.shape == (None,)


def _feature(example: Mapping[str, Any], number: int, name: str, model: ServedModel) -> Any:
    if name not in example:
        raise BadRequestError(f"example {number} has no feature {name!r}; the features are {sorted(model.inputs)}")
    value = example[name]
    shape = model.inputs[name].shape[1:]
    if not shape and isinstance(value, list) and len(value) == 1:
        return value[0]
    return [value] if len(shape) == 1 and not isinstance(value, list) else value


def _record(example: Mapping[str, Any]) -> bytes:
    record = ec.export.example_class()()
    for name, value in example.items():
        values: list[Any] = value if isinstance(value, list) else [value]
        feature = record.features.feature[name]
        try:
            if any(isinstance(one, (str, dict)) for one in values):
                feature.bytes_list.value.extend(from_base64(one, name) for one in values)
            elif any(isinstance(one, float) for one in values):
                feature.float_list.value.extend(values)
            elif values:  # a feature without a kind is a missing one, of any type
                feature.int64_list.value.extend(values)
        except (TypeError, ValueError, OverflowError) as error:
            raise BadRequestError(f"feature {name!r}: {str(value)[:40]!r} cannot be a value of a tf.Example") from error
        for given, stored in zip(values, feature.float_list.value, strict=False):
            if math.isinf(stored) and not math.isinf(given):
                raise BadRequestError(f"feature {name!r} holds {given}, which is infinite as float32")
    return record.SerializeToString()


def from_base64(value: Any, what: str) -> Any:
    """Returns the bytes of `{"b64": ...}` or of a string. Returns other values unchanged.

    Raises:
        BadRequestError: the value is not base64.
    """
    if isinstance(value, str):
        return value.encode()
    if not isinstance(value, dict) or value.keys() != {"b64"}:
        return value
    try:
        return base64.b64decode(value["b64"], validate=True)
    except (binascii.Error, TypeError, ValueError) as error:
        raise BadRequestError(f"{what}: {str(value['b64'])[:40]!r} is not base64") from error
