"""The transform from lists of label strings or ids to multi-hot labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from estimator_core.errors import ArgumentError
from estimator_heads.data.label_sets import LabelSets, by_class, values_of
from estimator_heads.transforms.labels import labels_of
from estimator_heads.vocabulary import Vocabulary, as_strings


class MultiHotLabels:
    """Converts several labels per example to one 0 or 1 per class, in the input.

    It replaces SparseTensor labels of tf.estimator. `MultiLabelHead.label_transforms()` returns it.

    Args:
        n_classes: the number of classes.
        vocabulary: the label strings in the order of their ids. None: labels are ids.
        feature: the labels to convert: "labels" if they are one array, or the name of the head for a MultiHead.

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
        self._rule = LabelSets(n_classes=n_classes, names=None if self._vocabulary is None else self._vocabulary.names)
        self._feature = feature

    def config(self) -> dict[str, Any]:
        """Returns the arguments."""
        names = None if self._vocabulary is None else list(self._vocabulary.names)
        return {"n_classes": self._n_classes, "vocabulary": names, "feature": self._feature}

    @property
    def files(self) -> Mapping[str, Path]:
        """There are no files."""
        return {}

    def apply(self, batch: Mapping[str, np.ndarray[Any, Any]]) -> dict[str, np.ndarray[Any, Any]]:
        """Returns the labels as int32 [batch, n_classes].

        A row is a list of labels, or a row of an array that is padded with "" or -1. An array [batch, ..., n_classes]
        of 0 and 1 is already multi-hot, like dense labels of tf.estimator. With more than two classes, lists of
        n_classes such numbers are multi-hot too, even if they are padded.

        Raises:
            ArgumentError: a label is not in the vocabulary, an id is not a class, or the width is wrong.
        """
        labels = labels_of(batch, self._feature)
        given = by_class(labels, self._n_classes)
        if given is not None and ((given == 0) | (given == 1)).all():
            return {**batch, self._feature: given.astype(np.int32)}
        if given is not None and self._n_classes == 2 and (given == -1).any():
            raise ArgumentError(
                f"{self._feature} with two columns and two classes must be multi-hot, 0 or 1. Given: "
                f"{given[(given == -1).any(-1)][0].tolist()}. For ids, add a third column of -1."
            )
        fault = self._rule.fault(labels, None)
        if fault is not None:
            place = f"{self._feature} hold {fault.value!r} in row {fault.row} of the batch"
            raise ArgumentError(f"{place}: it {fault.problem}. {fault.cure}")
        hot = np.zeros((len(labels), self._n_classes), np.int32)
        for example, row in enumerate(labels):
            hot[example, self._ids(values_of(row))] = 1
        return {**batch, self._feature: hot}

    def _ids(self, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        if values.size == 0:
            return np.zeros(0, np.int32)
        if self._vocabulary is None:
            return values[values != -1]
        strings = as_strings(values)
        return self._vocabulary.ids(strings[strings != ""])
