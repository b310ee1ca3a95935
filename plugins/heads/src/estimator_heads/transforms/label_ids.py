"""The transform from label strings to class ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from estimator_heads.transforms.labels import labels_of
from estimator_heads.vocabulary import Vocabulary, as_strings


class LabelIds:
    """Converts label strings to class ids in the input, before the batch reaches the device.

    `head.label_transforms()` returns the transform that a head needs. `ec.Estimator(..., label_transforms=...)` applies
    it to every batch.

    Args:
        vocabulary: the label strings, in the order of their ids.
        feature: the labels to convert: "labels" if they are one array, or the name of the head for a MultiHead.
        blank: the id of the empty string, which pads sequences. None: the empty string is refused like any unknown
            label.

    Example:
        >>> import numpy as np
        >>> transform = LabelIds(["cat", "dog"])
        >>> transform.apply({"labels": np.array(["dog", "cat"])})["labels"].tolist()
        [1, 0]
    """

    name = "label_ids"
    version = 1

    def __init__(self, vocabulary: Sequence[str], feature: str = "labels", blank: int | None = None) -> None:
        self._vocabulary = Vocabulary(list(vocabulary))
        self._feature = feature
        self._blank = blank

    def config(self) -> dict[str, Any]:
        """Returns the arguments."""
        return {"vocabulary": list(self._vocabulary.names), "feature": self._feature, "blank": self._blank}

    @property
    def files(self) -> Mapping[str, Path]:
        """There are no files."""
        return {}

    def apply(self, batch: Mapping[str, np.ndarray[Any, Any]]) -> dict[str, np.ndarray[Any, Any]]:
        """Returns the labels with int32 ids instead of strings.

        Raises:
            ArgumentError: a label is not in the vocabulary, or there are no labels with this name.
        """
        labels = labels_of(batch, self._feature)
        if self._blank is None:
            return {**batch, self._feature: self._vocabulary.ids(labels)}
        strings = as_strings(labels)
        ids = np.full(strings.shape, self._blank, np.int32)
        ids[strings != ""] = self._vocabulary.ids(strings[strings != ""])
        return {**batch, self._feature: ids}
