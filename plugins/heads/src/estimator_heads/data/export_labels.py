"""Label transforms for exports, whose labels may already be ids."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from estimator_heads.vocabulary import are_strings

if TYPE_CHECKING:
    from pathlib import Path

    from estimator_core.inputs import HostTransform


@dataclass(frozen=True)
class OfStrings:
    """A label transform that returns labels unchanged if they are not strings.

    Args:
        transform: the transform for strings.
        feature: the name of the labels that it applies to.

    Example:
        >>> from estimator_heads.transforms.label_ids import LabelIds
        >>> ids = OfStrings(LabelIds(["cat", "dog"]), "labels")
        >>> [ids.apply({"labels": np.array(labels)})["labels"].tolist() for labels in (["dog"], [0])]
        [[1], [0]]
    """

    transform: HostTransform
    feature: str

    @property
    def name(self) -> str:
        """The name of the transform."""
        return self.transform.name

    @property
    def version(self) -> int:
        """The version of the transform."""
        return self.transform.version

    @property
    def files(self) -> Mapping[str, Path]:
        """The files of the transform."""
        return self.transform.files

    def config(self) -> dict[str, Any]:
        """Returns the arguments of the transform."""
        return dict(self.transform.config())

    def apply(self, batch: Mapping[str, np.ndarray[Any, Any]]) -> Mapping[str, np.ndarray[Any, Any]]:
        """Returns the batch with ids instead of label strings."""
        found = batch.get(self.feature)
        return batch if found is None or not are_strings(found) else self.transform.apply(batch)
