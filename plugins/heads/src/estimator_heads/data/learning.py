"""Learns from the training data for all rules, in one pass."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from estimator_core.errors import InputError
from estimator_heads.data.places import Place
from estimator_heads.data.rule import Array


def learn_from(elements: Iterable[Any] | None, places: Sequence[Place], *, whole: bool) -> dict[str, Any]:
    """Returns the learned facts, by the names of places.

    Args:
        elements: parts of the data, `(features, labels)` or features. None: the data can be read only once.
        places: the arrays that have rules.
        whole: whether the data is in memory. Otherwise labels that are numbers are read only until they show that they
            are ids, usually in the first part.

    Raises:
        InputError: a feature must learn, and the data is empty or can be read only once.
    """
    wanted = [place for place in places if place.rule.learns]
    if elements is None:
        for place in wanted:
            if not place.of_labels:
                raise InputError(
                    f"{place} learns from the training data before the first step, and this input can be read only "
                    "once. Give its column a number, missing=0.0, or train from arrays, a DataFrame or files "
                    "(numpy_input_fn, pandas_input_fn, csv_input_fn, parquet_input_fn)."
                )
        return {}
    found: dict[str, list[Array]] = {place.name: [] for place in wanted}
    for element in elements if wanted else ():
        features, labels = element if isinstance(element, tuple) else (element, None)
        arrays = [(place, place.array(features, labels)) for place in wanted]
        for place, array in arrays:
            if array is not None:
                found[place.name].append(place.rule.part(array))
        known = [place for place, array in arrays if array is not None]
        wanted = [place for place in known if whole or not place.of_labels or not _are_ids(found[place.name])]
        if not wanted:
            break
    learned: dict[str, Any] = {}
    for place in wanted:
        try:
            known = place.rule.learn(found[place.name])
        except InputError as error:
            raise InputError(f"{place} {error}") from None
        if known is not None:
            learned[place.name] = known
    return learned


def _are_ids(parts: Sequence[Array]) -> bool:
    """Returns whether labels are numbers that need no names: the smallest one is 0, or one has a fraction."""
    numbers = [part for part in parts if part.size]
    if not numbers or any(part.dtype.kind not in "iuf" for part in numbers):
        return False
    return min(part.min() for part in numbers) == 0 or bool((numbers[-1] % 1 != 0).any())
