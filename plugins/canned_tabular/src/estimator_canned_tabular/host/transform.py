"""The host transform of feature columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from estimator_canned_tabular.columns.contract import HostIds
from estimator_canned_tabular.errors import FeatureColumnError
from estimator_canned_tabular.host.encoding import decode, encode
from estimator_core.export import EqualLengths, Feature, HostProgram


class FeatureIds:
    """Converts features to the arrays that the device reads: ids, weights and lengths under separate names.

    Args:
        columns: the column records by output name, or their form from `config`.
        drop: the features that the device does not read.
        **files: the vocabulary files, under the names in `columns`.

    Example:
        >>> import numpy as np
        >>> from estimator_canned_tabular import categorical_column_with_vocabulary_list
        >>> column = categorical_column_with_vocabulary_list("colour", ["R", "G"])
        >>> FeatureIds({"colour": column}, drop=["colour"]).apply({"colour": np.array(["G", "R", "?"])})
        {'colour.ids': array([[ 1],
               [ 0],
               [-1]], dtype=int32)}
    """

    name, version = "tabular_features", 1

    def __init__(self, columns: Mapping[str, Any], drop: Sequence[str] = (), **files: str | Path) -> None:
        paths = {name: Path(path) for name, path in files.items()}
        self._columns = {output: decode(column, paths) for output, column in columns.items()}
        self._drop = frozenset(drop)

    def config(self) -> dict[str, Any]:
        """Returns the arguments."""
        files: dict[str, Path] = {}
        columns = {output: encode(column, files) for output, column in self._columns.items()}
        return {"columns": columns, "drop": sorted(self._drop)}

    @property
    def files(self) -> Mapping[str, Path]:
        """The vocabulary files."""
        found: dict[str, Path] = {}
        for column in self._columns.values():
            encode(column, found)
        return found

    def apply(self, batch: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Returns the batch with `<output>.ids` (int32[batch, values], -1 for no value) for each column.

        Some columns also have `.weights` and `.lengths`.

        Raises:
            FeatureColumnError: a feature is missing or cannot be read.
        """
        result = {name: array for name, array in batch.items() if name not in self._drop}
        lengths: dict[str, np.ndarray] = {}
        for output, column in self._columns.items():
            made = _of_column(output, column, batch)
            result.update(made)
            if f"{output}.lengths" in made:
                lengths[output] = made[f"{output}.lengths"]
        _check_lengths(lengths)
        return result

    def program(self, features: Mapping[str, Feature]) -> HostProgram:
        """Returns what `apply` does as a program for features of these shapes.

        Raises:
            ExportError: a feature is missing or cannot be read.
        """
        from estimator_canned_tabular.host.operations import Operations, outputs_of  # imports all kinds of columns

        operations = Operations(features)
        made = {name: (name, feature) for name, feature in features.items() if name not in self._drop}
        lengths: list[str] = []
        for output, column in self._columns.items():
            outputs = outputs_of(output, column, operations)
            lengths += [value for name, (value, _) in outputs.items() if name == f"{output}.lengths"]
            made |= outputs
        return HostProgram(
            operations=(*operations.written, EqualLengths(inputs=tuple(lengths)))
            if len(lengths) > 1
            else (*operations.written,),
            outputs={name: value for name, (value, _) in made.items()},
            features={name: feature for name, (_, feature) in made.items()},
        )


def _of_column(output: str, column: Any, batch: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    if not hasattr(column, "host_ids"):
        return _sequence_of_numbers(output, column, batch)
    found: HostIds = column.host_ids(batch)
    made = {f"{output}.ids": found.ids.astype(np.int32)}
    if found.weights is not None:
        made[f"{output}.weights"] = found.weights
    if type(column).__name__ == "SequenceCategoricalColumn":
        made[f"{output}.lengths"] = found.lengths.astype(np.int32)
    return made


def _sequence_of_numbers(output: str, column: Any, batch: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    numbers, lengths = column.host_numbers(batch)
    return {f"{output}.numbers": numbers, f"{output}.lengths": lengths.astype(np.int32)}


def _check_lengths(lengths: Mapping[str, np.ndarray]) -> None:
    """Checks that all sequences of an example have the same length."""
    (first, *others) = lengths.items() if lengths else (("", np.zeros(0)),)
    for name, found in others:
        (rows,) = np.nonzero(found != first[1])
        if rows.size:
            row = int(rows[0])
            raise FeatureColumnError(
                f"All sequences of an example must have the same length: in row {row} of the batch {first[0]!r} has "
                f"{int(first[1][row])} steps and {name!r} {int(found[row])}."
            )
