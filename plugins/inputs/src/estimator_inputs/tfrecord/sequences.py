"""Converts tf.SequenceExamples to tf.Examples. The steps of each feature list are joined."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from estimator_inputs.examples.message import sequence_example_class
from estimator_inputs.tfrecord.spec import FeatureSpec


def flattened(
    data: bytes, begins: np.ndarray, sizes: np.ndarray, lists: Mapping[str, FeatureSpec]
) -> tuple[bytes, np.ndarray, np.ndarray, dict[int, str]]:
    """Converts tf.SequenceExamples to tf.Examples with the features of the context and of the lists.

    Args:
        data: the bytes that contain the records.
        begins: int64[n], the place where each record begins.
        sizes: int64[n], the length of each record.
        lists: the feature lists to read, by name. All other features are those of the context.

    Returns:
        The bytes of the tf.Examples, the place and length of each, and the faults of invalid records.
    """
    from google.protobuf.message import DecodeError

    records: list[bytes] = []
    faults: dict[int, str] = {}
    for row, (begin, size) in enumerate(zip(begins.tolist(), sizes.tolist(), strict=True)):
        try:
            records.append(_flat(sequence_example_class().FromString(data[begin : begin + size]), lists))
        except DecodeError as error:
            records.append(b"")
            faults[row] = f"not a serialized tf.SequenceExample: {error}"
        except ValueError as error:
            records.append(b"")
            faults[row] = str(error)
    lengths = np.array([len(record) for record in records], np.int64)
    return b"".join(records), np.cumsum(lengths) - lengths, lengths, faults


def _flat(record: Any, lists: Mapping[str, FeatureSpec]) -> bytes:
    """Flattens one record.

    Raises:
        ValueError: the steps of a list have values of several kinds, or a step has another number of values.
    """
    from estimator_inputs.examples.message import example_class

    flat: Any = example_class()()
    flat.features.CopyFrom(flat.features.FromString(record.context.SerializeToString()))
    for name, spec in lists.items():
        flat.features.feature.pop(name, None)
        if name not in record.feature_lists.feature_list:
            continue
        steps = record.feature_lists.feature_list[name].feature
        found = {kind for step in steps if (kind := step.WhichOneof("kind")) is not None}
        if len(found) > 1:
            raise ValueError(f"feature {name!r} has steps of several kinds: {', '.join(sorted(found))}")
        kind = next(iter(found), spec.kind)
        values = getattr(flat.features.feature[name], kind)
        values.SetInParent()
        for number, step in enumerate(steps):
            given = getattr(step, kind).value
            if len(given) != spec.size:
                raise ValueError(
                    f"feature {name!r} has {len(given)} values in step {number}, but must have {spec.size}"
                )
            values.value.extend(given)
    return flat.SerializeToString()
