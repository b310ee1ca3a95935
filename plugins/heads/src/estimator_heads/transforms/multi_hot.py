"""Multi-hot labels from lists of label strings or ids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from estimator_core.errors import ArgumentError
from estimator_heads.vocabulary import Vocabulary, as_strings


class MultiHotLabels:
    """Turns several labels an example into one 0 or 1 a class, in the input.

    It takes the place of tf.estimator's SparseTensor labels. `MultiLabelHead.label_transforms()` returns it.

    Args:
        n_classes: number of classes.
        vocabulary: the label strings in the order of their ids; None: labels are ids.
        feature: the labels it applies to: "labels" if they are one array, the head's name for a MultiHead.

    Raises:
        ArgumentError: the vocabulary does not have `n_classes` names.

    Example:
        >>> import numpy as np
        >>> transform = MultiHotLabels(3, ["red", "round", "sweet"])
        >>> rows = np.array([["red", "sweet"], ["round", ""]])
        >>> transform.apply({"labels": rows})["labels"].tolist()
        [[1, 0, 1], [0, 1, 0]]
        >>> MultiHotLabels(3).apply({"labels": np.array([[0, 2], [1, -1]])})["labels"].tolist()
        [[1, 0, 1], [0, 1, 0]]
        >>> MultiHotLabels(3).apply({"labels": np.array([[1, 0, 1], [0, 1, 0]])})["labels"].tolist()
        [[1, 0, 1], [0, 1, 0]]
    """

    name = "multi_hot_labels"
    version = 1

    def __init__(self, n_classes: int, vocabulary: Sequence[str] | None = None, feature: str = "labels") -> None:
        self._vocabulary = None if vocabulary is None else Vocabulary(list(vocabulary))
        if self._vocabulary is not None and len(self._vocabulary) != n_classes:
            raise ArgumentError(f"The vocabulary has {len(self._vocabulary)} names for {n_classes} classes.")
        self._n_classes = n_classes
        self._feature = feature

    def config(self) -> dict[str, Any]:
        """The arguments."""
        names = None if self._vocabulary is None else list(self._vocabulary.names)
        return {"n_classes": self._n_classes, "vocabulary": names, "feature": self._feature}

    @property
    def files(self) -> Mapping[str, Path]:
        """None."""
        return {}

    def apply(self, batch: Mapping[str, np.ndarray[Any, Any]]) -> dict[str, np.ndarray[Any, Any]]:
        """The labels as int32 [batch, n_classes].

        A row is a list of labels, or a row of an array filled up with "" or -1. An array [batch, ..., n_classes] of 0
        and 1 is multi-hot already, as dense labels of tf.estimator are. So are lists of n_classes such numbers, also
        filled up as files do it, if there are more than two classes.

        Raises:
            ArgumentError: a label that is not in the vocabulary, or an id outside the classes.
        """
        given = self._by_class(batch[self._feature])
        if given is not None and ((given == 0) | (given == 1)).all():
            return {**batch, self._feature: given.astype(np.int32)}
        if given is not None and self._n_classes == 2 and (given == -1).any():
            raise ArgumentError(
                f"{self._feature} of two columns and two classes are 0 and 1, as multi-hot labels. Given: "
                f"{given[(given == -1).any(-1)][0].tolist()}. For ids, add a third column of -1."
            )
        rows = [self._ids(row) for row in batch[self._feature]]
        hot = np.zeros((len(rows), self._n_classes), np.int32)
        for example, ids in enumerate(rows):
            hot[example, ids] = 1
        return {**batch, self._feature: hot}

    def _by_class(self, labels: Any) -> np.ndarray[Any, Any] | None:
        """Numbers [batch, ..., n_classes]; None if the labels are not of this form."""
        given, count = np.asarray(labels), self._n_classes
        if count > 2:  # as ids, so many different ones reach n_classes - 1; of two classes they may be 0 and 1
            if given.dtype == object and given.ndim == 1 and all(np.shape(row) == (count,) for row in given):
                given = np.array([*map(np.asarray, given)])
            elif given.ndim == 2 and given.shape[1] > count and given.dtype.kind in "iu":
                given = given[:, :count] if (given[:, count:] == -1).all() else given
        return given if given.ndim > 1 and given.shape[-1] == count and given.dtype.kind in "biuf" else None

    def _ids(self, row: Any) -> np.ndarray[Any, Any]:
        single = isinstance(row, (str, bytes)) or not isinstance(row, (Iterable, np.ndarray))
        values = np.asarray([row] if single else row)
        if values.size == 0:
            return np.zeros(0, np.int32)
        if self._vocabulary is not None:
            strings = as_strings(values)
            return self._vocabulary.ids(strings[strings != ""])
        if values.dtype.kind not in "iu":
            raise ArgumentError(f"Labels dtype should be integer. Instead got {values.dtype}.")
        ids = values[values != -1]
        if ((ids < 0) | (ids >= self._n_classes)).any():
            raise ArgumentError(
                f"labels must be an integer SparseTensor with values in [0, {self._n_classes}). Given: {ids.tolist()}."
            )
        return ids
