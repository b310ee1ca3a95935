"""Outputs of a signature as columns of a table: one column per class, and the predicted class."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from estimator_core.export import Feature

_SCORES = ("probabilities", "scores")


def not_by_row(signature: object) -> frozenset[str]:
    """Returns the outputs of a signature that do not have one value per row, whatever their length.

    An export with a fixed batch size does not record which outputs have one value per row. Their lengths decide then.
    """
    inputs: Mapping[str, Feature] = getattr(signature, "inputs", {})
    outputs: Mapping[str, Feature] = getattr(signature, "outputs", {})
    if all(feature.shape[:1] != (None,) for feature in inputs.values()):
        return frozenset()
    return frozenset(name for name, feature in outputs.items() if feature.shape[:1] != (None,))


def columns_of(
    outputs: Mapping[str, np.ndarray], rows: int, apart: Collection[str] = frozenset()
) -> dict[str, np.ndarray]:
    """Returns columns with one value per row. Only vectors that are not scores of classes have several values per row.

    Scores of classes become columns with the class in their names, and `classes` becomes the predicted class. Values
    that are the same in every row (`all_classes`) appear in these names only. Outputs without one value per row are
    left out.

    Args:
        outputs: the outputs of a signature, by name.
        rows: the number of rows of the batch.
        apart: the outputs without one value per row, even if their length matches: `not_by_row` of the signature.

    Example:
        >>> outputs = {"scores": np.array([[0.2, 0.8]]), "classes": np.array([["cat", "dog"]], object)}
        >>> {name: column.tolist() for name, column in columns_of(outputs, 1).items()}
        {'scores_cat': [0.2], 'scores_dog': [0.8], 'classes': ['dog']}
    """
    named = {name: array for name, array in outputs.items() if name not in apart and array.ndim and len(array) == rows}
    labels = _labels(named)
    found: dict[str, np.ndarray] = {}
    for name, array in named.items():
        if labels is not None and name in _SCORES and array.shape[1:] == labels.shape:
            found |= {f"{name}_{_text(label)}": array[:, place] for place, label in enumerate(labels.tolist())}
            if "classes" not in named:
                found["classes"] = labels[array.argmax(axis=1)]
        else:
            found[name] = array[:, 0] if array.shape[1:] == (1,) else array
    return found


def _labels(named: dict[str, np.ndarray]) -> np.ndarray | None:
    """Returns the classes of the scores, in order. Removes the outputs that list the classes in every row."""
    ids, classes = named.pop("all_class_ids", None), named.pop("all_classes", None)
    if classes is None and ids is None and "scores" in named and named["scores"].ndim == 2:  # a ClassificationOutput
        listed = named.get("classes")
        if listed is not None and listed.shape == named["scores"].shape and listed.shape[1] > 1:
            classes = named.pop("classes")
    every = classes if classes is not None else ids
    return None if every is None else every[0]


def _text(label: Any) -> str:
    return label.decode("utf-8", "replace") if isinstance(label, bytes) else str(label)
