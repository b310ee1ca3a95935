"""`Schema`: the types of the columns of a table, and the rules for their values."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from estimator_core.errors import ArgumentError
from estimator_core.storage import draft_of

FeatureKind = Literal["number", "category", "text", "time", "other"]
#: The smallest number of rows of a key, and the share of rows that must differ: all, within the error of the sketch.
_FEWEST, _ALL = 20, 0.97
FEATURE_KINDS = ("number", "category", "text", "time", "other")


@dataclass(frozen=True, kw_only=True)
class Seen:
    """Statistics of the rows from which a feature was learned. Statistics of numbers are None without numbers.

    Attributes:
        rows: the number of rows read.
        missing: the number of rows without a value.
        different: the number of different values; above 65,536 with a standard error of 0.8%.
        mean, deviation: the mean and the population deviation of the finite numbers.
        median: the median of all numbers.
        edges: ascending numbers that divide the values into parts.
        shares: [len(edges) + 1] fractions of the values: up to the first edge, between two edges (with the upper one),
            and above the last.
        counts: the number of occurrences of each value of the vocabulary, by text.
    """

    rows: int = 0
    missing: int = 0
    different: int = 0
    mean: float | None = None
    deviation: float | None = None
    median: float | None = None
    edges: tuple[float, ...] = ()
    shares: tuple[float, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True, kw_only=True)
class FeatureSchema:
    """The kind of a column, and the rules for its values.

    Attributes:
        name: the name of the column.
        kind: "number"; "category", with a vocabulary; "text", whose values are any words; "time", seconds since 1970;
            "other", which is only counted.
        dtype: the dtype, such as "int64", "float32", "string" or "bool".
        shape: the shape of one row; None if rows differ.
        required: whether the column must exist.
        most_missing: the largest fraction of rows without a value.
        minimum, maximum: limits of numbers and times. None: no limit.
        vocabulary: the values of a category, or the classes of a label, in order.
        seen: statistics of the rows from which it was learned.
    """

    name: str
    kind: FeatureKind
    dtype: str
    shape: tuple[int | None, ...] = ()
    required: bool = True
    most_missing: float = 0.0
    minimum: float | None = None
    maximum: float | None = None
    vocabulary: tuple[Any, ...] = ()
    seen: Seen = field(default_factory=Seen)

    @property
    def missing_rate(self) -> float:
        """The fraction of the seen rows without a value."""
        return self.seen.missing / self.seen.rows if self.seen.rows else 0.0

    @property
    def mean(self) -> float | None:
        """The mean of the seen numbers."""
        return self.seen.mean

    @property
    def median(self) -> float | None:
        """The median of the seen numbers."""
        return self.seen.median

    @property
    def is_key(self) -> bool:
        """Whether all rows seen have different values, such as row numbers or names.

        Real numbers are never keys, nor is a column of fewer than 20 rows. The answer is exact up to 65,536 rows.
        """
        seen = self.seen
        may_be = self.dtype.startswith(("int", "uint", "string")) and not self.shape
        return may_be and seen.rows >= _FEWEST and not seen.missing and seen.different >= _ALL * seen.rows


@dataclass(frozen=True, kw_only=True)
class Schema:
    """The columns of a table and their rules.

    Attributes:
        features: the features by name, including the label.
        label: the column of the label; None without a label.
    """

    features: Mapping[str, FeatureSchema]
    label: str | None = None

    def feature(self, name: str) -> FeatureSchema:
        """Returns the feature with this name.

        Raises:
            ArgumentError: there is no such feature. The message names similar ones.
        """
        if name in self.features:
            return self.features[name]
        near = difflib.get_close_matches(name, self.features, n=3)
        listed = f"Similar features: {', '.join(near)}." if near else f"Features: {', '.join(self.features) or 'none'}."
        raise ArgumentError(f"The schema has no feature {name!r}. {listed}")

    @property
    def classes(self) -> tuple[Any, ...]:
        """The classes of the label, in order. Empty if the label is a number or if there is no label."""
        return () if self.label is None else self.feature(self.label).vocabulary

    def write(self, path: str | Path) -> None:
        """Writes the schema in the format of the file extension: TOML, which is easy to edit, or a format of a plugin.

        Raises:
            ArgumentError: no plugin has a format for this extension.
        """
        from estimator_inputs.schema.file_format import format_of

        text, place = format_of(path).written(self), Path(os.path.expanduser(path))
        place.parent.mkdir(parents=True, exist_ok=True)
        with draft_of(place) as draft:  # a full disk leaves the previous file intact
            draft.write_text(text, encoding="utf-8")

    @classmethod
    def read(cls, path: str | Path) -> Schema:
        """Reads a file that `write` wrote, possibly edited by hand.

        Raises:
            ArgumentError: the file cannot be read, no plugin has its format, or it is not a valid schema. The message
                names the line and the key.

        Example:
            >>> import tempfile
            >>> from estimator_inputs import learn_schema
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     learn_schema({"size": ["S", "M", "S", "M"]}).write(f"{folder}/schema.toml")
            ...     Schema.read(f"{folder}/schema.toml").feature("size").vocabulary
            ('M', 'S')
        """
        from estimator_inputs.schema.file_format import format_of

        found = format_of(path)
        try:
            text = Path(os.path.expanduser(path)).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ArgumentError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from error
        return found.parsed(text, str(path))
