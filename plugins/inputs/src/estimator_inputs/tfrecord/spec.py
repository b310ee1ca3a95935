"""Feature specifications in a common form, after validation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from estimator_core.errors import ArgumentError, ArgumentTypeError
from estimator_inputs.reading.vocabulary import Vocabularies, Vocabulary, vocabulary_of

STRING = np.dtype(object)
#: The kinds of lists, each with its tag in a Feature message.
KINDS = {"bytes_list": 0x0A, "float_list": 0x12, "int64_list": 0x1A}
_KIND_OF = {"f": "float_list", "i": "int64_list", "u": "int64_list", "b": "int64_list"}


@dataclass(frozen=True, kw_only=True)
class FeatureSpec:
    """One feature of a record.

    Attributes:
        form: "fixed", "varlen" or "sequence".
        shape: the shape of one example ("fixed") or one item ("sequence"); () for "varlen".
        dtype: the dtype of the array. Strings have object.
        kind: the kind of the list in the record.
        default: object[size] or number[size], the values for records without the feature. None: such records are
            refused.
        fill: the value that pads shorter rows.
        vocabulary: the allowed values. None: all values are allowed.
    """

    form: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    kind: str
    default: np.ndarray | None
    fill: Any
    vocabulary: Vocabulary | None = None

    @property
    def size(self) -> int:
        """The number of values of one example or item."""
        return math.prod(self.shape)


def feature_specs(features: Mapping[str, Any], vocabularies: Vocabularies | None = None) -> dict[str, FeatureSpec]:
    """Reads `ec.export.FixedLenFeature`, `VarLenFeature` and `FixedLenSequenceFeature`, or those of TensorFlow.

    Args:
        features: the specifications by name.
        vocabularies: the allowed values by name. None: all values are allowed.

    Raises:
        ArgumentError, ArgumentTypeError: a specification is invalid. The message names the feature.

    Example:
        >>> from estimator_core import export
        >>> feature_specs({"age": export.FixedLenFeature((), "int64", -1)})["age"].default.tolist()
        [-1]
    """
    if not isinstance(features, Mapping) or not features:
        raise ArgumentTypeError(
            f"features must be a dict of ec.export.FixedLenFeature, VarLenFeature or FixedLenSequenceFeature by name, "
            f"given: {features!r:.200}."
        )
    specs = {str(name): _spec(str(name), spec) for name, spec in features.items()}
    if vocabularies is None:
        return specs
    if not isinstance(vocabularies, Mapping):
        raise ArgumentTypeError(f"vocabularies must be a dict of lists by feature, given: {vocabularies!r:.200}.")
    for name, tokens in vocabularies.items():
        if name not in specs:
            raise ArgumentError(f"vocabularies names {name!r}; the features are {', '.join(specs)}.")
        default = specs[name].default
        defaults = [] if default is None else default.tolist()
        specs[name] = replace(specs[name], vocabulary=vocabulary_of(name, tokens, specs[name].dtype, defaults))
    return specs


def _spec(name: str, spec: Any) -> FeatureSpec:
    form = _form(name, spec)
    dtype = _dtype(name, spec.dtype)
    kind = "bytes_list" if dtype == STRING else _KIND_OF[dtype.kind]
    fill: Any = {"bytes_list": b"", "float_list": 0.0, "int64_list": -1 if dtype.kind == "i" else 0}[kind]
    if form == "varlen":
        return FeatureSpec(form=form, shape=(), dtype=dtype, kind=kind, default=None, fill=fill)
    shape = tuple(spec.shape)
    if any(not isinstance(size, (int, np.integer)) or size < 0 for size in shape):
        raise ArgumentError(f"features[{name!r}]: all sizes must be fixed, given: {shape}.")
    given = spec.default_value
    if form == "sequence":
        fill = _value(name, given, dtype) if given is not None else (b"" if dtype == STRING else 0)
        missing = None if spec.allow_missing is False else np.empty(0, dtype)
        return FeatureSpec(form=form, shape=shape, dtype=dtype, kind=kind, default=missing, fill=fill)
    default = None if given is None else _default(name, given, shape, dtype)
    return FeatureSpec(form=form, shape=shape, dtype=dtype, kind=kind, default=default, fill=fill)


def _form(name: str, spec: Any) -> str:
    if hasattr(spec, "dtype"):
        if hasattr(spec, "allow_missing"):
            return "sequence"
        if hasattr(spec, "default_value") and hasattr(spec, "shape"):
            return "fixed"
        if type(spec).__name__ == "VarLenFeature":
            return "varlen"
    raise ArgumentTypeError(
        f"features[{name!r}] must be an ec.export.FixedLenFeature, VarLenFeature or FixedLenSequenceFeature, "
        f"given: {spec!r}."
    )


def _dtype(name: str, given: Any) -> np.dtype[Any]:
    given = getattr(given, "as_numpy_dtype", given)  # a dtype of TensorFlow
    if given in ("string", "bytes", str, bytes, object):
        return STRING
    try:
        dtype = np.dtype(given)
    except TypeError as error:
        raise ArgumentTypeError(
            f"features[{name!r}]: {given!r} is not a dtype. Use a numpy dtype or 'string'."
        ) from error
    if dtype.kind in "USO":
        return STRING
    if dtype.kind not in _KIND_OF:
        raise ArgumentTypeError(f"features[{name!r}]: a tf.Example holds int64, float and bytes, not {dtype}.")
    return dtype


def _value(name: str, given: Any, dtype: np.dtype[Any]) -> Any:
    return _default(name, given, (), dtype)[0]


def _default(name: str, given: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    try:
        if dtype == STRING:
            values = np.array(given, dtype=object).reshape(-1)
            array = np.array([v.encode() if isinstance(v, str) else bytes(v) for v in values] + [None], object)[:-1]
        else:
            array = np.asarray(given).astype(dtype)
        return np.broadcast_to(array.reshape(shape if array.size != 1 else ()), shape).reshape(-1)
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            f"features[{name!r}]: the default value {given!r} is not of type {dtype} and shape {shape}: {error}."
        ) from error


def summary_of(specs: Mapping[str, FeatureSpec]) -> str:
    """Returns names, dtypes and shapes, for the fingerprint of a position."""
    return " ".join(
        f"{name}:{spec.form} {spec.dtype}{list(spec.shape)}"
        f"{f' in {spec.vocabulary.summary}' if spec.vocabulary else ''}"
        for name, spec in sorted(specs.items())
    )
