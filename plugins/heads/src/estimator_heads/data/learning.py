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
        whole: whether the data is in memory. Otherwise labels that are numbers are ids, and are not read in advance.

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
        wanted = [p for p, a in arrays if a is not None and (whole or not p.of_labels or a.dtype.kind not in "iuf")]
        if not wanted:
            break
        for place, array in arrays:
            if array is not None and place in wanted:
                found[place.name].append(place.rule.part(array))
    learned: dict[str, Any] = {}
    for place in wanted:
        try:
            known = place.rule.learn(found[place.name])
        except InputError as error:
            raise InputError(f"{place} {error}") from None
        if known is not None:
            learned[place.name] = known
    return learned
