"""Ids of 64 bits on devices that compute with 32 bits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from estimator_core.errors import ArgumentError, InputError

_NO_ID = np.uint64(2**64 - 1)


class WideIds:
    """A host transform that splits ids of 64 bits into words of 32 bits: int32[..., 2], the high word first.

    An unsigned id of 2**63 or more has the words of the signed id with the same bits, and `known_ids` returns that
    signed id. So 2**64 - 1 is refused: its words mean that there is no id.

    Args:
        features: the names of the features that hold integers.

    Raises:
        ArgumentError: there are no features.

    Example:
        >>> WideIds(["user"]).apply({"user": np.array([1, 2**32 + 5])})["user"].tolist()
        [[0, 1], [1, 5]]
    """

    name, version = "wide_ids", 1

    def __init__(self, features: Sequence[str]) -> None:
        if isinstance(features, str) or not features:
            raise ArgumentError(f"WideIds takes a list of feature names, given: {features!r}.")
        self._features = tuple(features)

    def config(self) -> dict[str, Any]:
        """Returns the arguments from which the transform can be made again."""
        return {"features": list(self._features)}

    @property
    def files(self) -> Mapping[str, Path]:
        """The files of the transform. There are none."""
        return {}

    def apply(self, batch: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Returns the batch with these features in words.

        Raises:
            InputError: a feature is missing, does not hold integers, or holds 2**64 - 1.
        """
        return {**batch, **{feature: _words(feature, batch) for feature in self._features}}


def _words(feature: str, batch: Mapping[str, np.ndarray]) -> np.ndarray:
    if feature not in batch:
        raise InputError(f"WideIds: the batch has no feature {feature!r}. Features: {sorted(batch)}.")
    ids = batch[feature]
    if ids.dtype.kind not in "iu":
        cure = " Missing values turn integers into floats: fill them with -1." if ids.dtype.kind == "f" else ""
        raise InputError(f"WideIds: the feature {feature!r} must hold integers, given {ids.dtype}.{cure}")
    if ids.dtype == np.uint64 and (ids == _NO_ID).any():
        raise InputError(
            f"WideIds: the feature {feature!r} holds 2**64 - 1, whose words stand for a missing id. Use another id, or "
            "-1 in an int64 array for a missing id."
        )
    ids = ids.astype(np.int64)
    return np.stack([ids >> 32, ids & 0xFFFFFFFF], axis=-1).astype(np.uint32).view(np.int32)
