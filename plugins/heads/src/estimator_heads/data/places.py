"""The arrays that have rules (labels, labels of one head, features), and the messages about refused values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from estimator_heads.data.rule import Array, DataRule, Fault

#: Reads the data of an input again. Yields its parts, each with a function that names the place of a row.
Parts = Callable[[], Iterator[tuple[Any, Callable[[int], str]]]]
#: Applies all rules to features and labels. The function argument names the place of a row.
Keeping = Callable[[Any, Any, Callable[[int], str]], tuple[Any, Any]]


class Place(NamedTuple):
    """An array of a batch, and the rule that applies to it.

    Attributes:
        key: the name of the feature. For labels, the name of the head inside a MultiHead, or "" for a single head.
        of_labels: whether the array is labels.
        rule: the rule.
        of_weights: whether it is a feature with the weight of each example. Predictions need no weights.
    """

    key: str
    of_labels: bool
    rule: DataRule
    of_weights: bool = False

    @property
    def in_predictions(self) -> bool:
        """Whether predictions also read the array."""
        return not (self.of_labels or self.of_weights)

    @property
    def name(self) -> str:
        """The name under which learned facts are stored."""
        return "/".join(["labels" if self.of_labels else "features", *([self.key] if self.key else [])])

    def __str__(self) -> str:
        if not self.of_labels:
            return f"{'Weight' if self.of_weights else 'Feature'} {self.key!r}"
        return f"Labels of head {self.key!r}" if self.key else "Labels"

    def array(self, features: Any, labels: Any) -> Array | None:
        """Returns the array, or None if it does not exist.

        For a single head, a dict with one array of labels counts as that array. A DataFrame of one column has this
        form.
        """
        leaf: Any = labels if self.of_labels else features
        if leaf.__class__ is np.ndarray:  # the batches of most inputs
            return None if self.key else leaf
        if leaf.__class__ is dict or isinstance(leaf, Mapping):
            named: Mapping[str, Any] = leaf
            only = self.of_labels and not self.key and len(named) == 1
            leaf = next(iter(named.values())) if only else named.get(self.key)
        elif self.key:
            return None
        if leaf.__class__ is np.ndarray:
            return leaf
        if leaf is None or isinstance(leaf, Mapping):
            return None
        if hasattr(leaf, "__array__"):
            return np.asarray(leaf)
        return np.array(leaf, object) if isinstance(leaf, (list, tuple)) else None


def absent(places: Sequence[Place], features: Any) -> str | None:
    """Returns the message about a missing feature that has a rule, or None if all are present."""
    if not isinstance(features, Mapping):
        return None
    for place in places:
        if not place.of_labels and place.key not in features:
            known = ", ".join(map(repr, sorted(map(str, features))))
            return (
                f"{place} is not in the features dictionary. Found: {known}. Add the column to the input, or leave it "
                "out of the model."
            )
    return None


class RefusalError(Exception):
    """A value violates a rule."""

    def __init__(self, place: Place, fault: Fault, where: Callable[[int], str]) -> None:
        super().__init__(place, fault)
        self._place, self._fault, self._where = place, fault, where

    def told(self, where: Callable[[int], str] | None = None) -> str:
        """Returns the message.

        Args:
            where: returns the place of a row. None: the place that was found.
        """
        fault, verb = self._fault, "hold" if self._place.of_labels else "holds"
        row = (where or self._where)(fault.row)
        cure = f" {fault.cure}" if fault.cure else ""
        return f"{self._place} {verb} {fault.value!r} in {row}: it {fault.problem}.{cure}"


def found_again(refusal: RefusalError, parts: Parts | None, kept: Keeping) -> str:
    """Returns the message of a refusal. It names file and line if the input reads files."""
    for element, where in () if parts is None else parts():
        features, labels = element if isinstance(element, tuple) else (element, None)
        try:
            kept(features, labels, where)
        except RefusalError as found:
            return found.told()
    return refusal.told()
