"""The checks of numeric columns, kept in exports."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from estimator_canned_tabular.errors import FeatureColumnError
from estimator_canned_tabular.host.number_rule import NumberRule
from estimator_core.export import Feature, HostProgram


class CheckedNumbers:
    """Refuses features of numeric columns that are not finite numbers. None becomes NaN.

    Args:
        columns: for each feature: `width` and `missing` of its column, and `whole` if categories are read from it, too.

    Example:
        >>> CheckedNumbers({"age": {"missing": None}}).apply({"age": np.array([1.0, np.inf])})
        Traceback (most recent call last):
        ...
        estimator_canned_tabular.errors.FeatureColumnError: Feature 'age' holds inf in row 1: it is not finite. ...
    """

    name, version = "tabular_numbers", 1

    def __init__(self, columns: Mapping[str, Mapping[str, Any]]) -> None:
        self._columns = {key: dict(column) for key, column in columns.items()}
        self._rules = {key: NumberRule(key=key, **column) for key, column in columns.items()}

    def config(self) -> dict[str, Any]:
        """Returns the arguments."""
        return {"columns": self._columns}

    @property
    def files(self) -> Mapping[str, Path]:
        """The files of the transform. There are none."""
        return {}

    def apply(self, batch: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Returns the checked batch.

        Raises:
            FeatureColumnError: naming feature, row, value and what to do.
        """
        result = dict(batch)
        for key, rule in self._rules.items():
            if key not in batch:
                continue
            fault = rule.fault(batch[key], None)
            if fault is not None:
                raise FeatureColumnError(
                    f"Feature {key!r} holds {fault.value!r} in row {fault.row}: it {fault.problem}. {fault.cure}"
                )
            result[key] = rule.convert(batch[key], None)
        return result

    def program(self, features: Mapping[str, Feature]) -> HostProgram:
        """Returns an empty program: finite numbers are unchanged, and other formats refuse nothing."""
        return HostProgram(outputs={name: name for name in features}, features=dict(features))
