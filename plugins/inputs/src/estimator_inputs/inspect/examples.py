"""Infers the features of tf.Examples from the first records."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

from estimator_core import export
from estimator_core.errors import InputError

_DTYPES = {"bytes_list": "string", "float_list": "float32", "int64_list": "int64"}


def guessed_features(records: Iterable[bytes], where: str) -> dict[str, Any]:
    """Returns a feature specification that fits the records.

    A feature with the same number of values in each record has fixed length. Other features have any length.

    Args:
        records: serialized tf.Examples.
        where: the name of the file in messages.

    Raises:
        InputError: no record is a tf.Example.

    Example:
        >>> record = export.example_class()()
        >>> record.features.feature["age"].int64_list.value.append(3)
        >>> guessed_features([record.SerializeToString()], "ages")
        {'age': FixedLenFeature(shape=(), dtype='int64', default_value=None)}
    """
    from google.protobuf.message import DecodeError

    kinds: dict[str, Counter[str]] = defaultdict(Counter)
    sizes: dict[str, Counter[int]] = defaultdict(Counter)
    total, broken = 0, ""
    for number, record in enumerate(records):
        try:
            features = export.example_class().FromString(record).features.feature
        except DecodeError as error:
            broken = broken or f"{where}, record {number}: not a serialized tf.Example: {error}."
            continue
        total += 1
        for name, feature in features.items():
            kind = feature.WhichOneof("kind")
            if kind is not None:
                kinds[name][kind] += 1
                sizes[name][len(getattr(feature, kind).value)] += 1
    if not total:
        raise InputError(broken or f"{where} has no records.")
    found: dict[str, Any] = {}
    for name in sorted(kinds):
        dtype = _DTYPES[kinds[name].most_common(1)[0][0]]
        size, times = sizes[name].most_common(1)[0]
        if times == total:
            found[name] = export.FixedLenFeature(() if size == 1 else (size,), dtype)
        else:
            found[name] = export.VarLenFeature(dtype)
    return found
