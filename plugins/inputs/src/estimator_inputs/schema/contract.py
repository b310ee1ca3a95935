"""`Schema`: what the columns of a table are and may hold."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from estimator_core.errors import ArgumentError

FeatureKind = Literal["number", "category", "text", "time", "other"]
#: Rows of a key, and the share of them that must be different: all, as a sketch counts.
_FEWEST, _ALL = 20, 0.97
FEATURE_KINDS = ("number", "category", "text", "time", "other")


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What the rows looked like from which a feature was learned. Numbers are None where it has none.

    Attributes:
        rows: that were read.
        missing: of these, how many lack a value.
        different: how many different values; above 65,536 within 0.8% (one standard error).
        mean, deviation: of the finite numbers; the deviation is of the population.
        median: of all numbers.
        edges: numbers in rising order that cut the values into parts.
        shares: the parts, [len(edges) + 1]: up to the first edge, between two (the upper one included), above the last.
        counts: how often each value of the vocabulary came, by its text.
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
    """What one column is, and what its values must keep to.

    Attributes:
        name: of the column.
        kind: "number"; "category", with a vocabulary; "text", whose values are all kinds of words; "time", seconds
            since 1970; "other", which is only counted.
        dtype: such as "int64", "float32", "string", "bool".
        shape: of one row; None where rows differ.
        required: whether the column must be there.
        most_missing: the share of rows that may lack a value.
        minimum, maximum: limits of numbers and times; None: none.
        vocabulary: the values of a category, or the classes of a label, in order.
        seen: statistics of the rows it was learned from.
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
        """The share of the rows seen that lack a value."""
        return self.seen.missing / self.seen.rows if self.seen.rows else 0.0

    @property
    def mean(self) -> float | None:
        """The mean of the numbers seen."""
        return self.seen.mean

    @property
    def median(self) -> float | None:
        """The median of the numbers seen."""
        return self.seen.median

    @property
    def is_key(self) -> bool:
        """Whether all rows seen have values and these look all different: a number of a row, or a name.

        Real numbers are no keys, nor is a column of fewer than 20 rows. Exact up to 65,536 rows.
        """
        seen = self.seen
        may_be = self.dtype.startswith(("int", "uint", "string")) and not self.shape
        return may_be and seen.rows >= _FEWEST and not seen.missing and seen.different >= _ALL * seen.rows


@dataclass(frozen=True, kw_only=True)
class Schema:
    """What the columns of a table are.

    Attributes:
        features: by name, the label included.
        label: the column that is the label; None: there is none.
    """

    features: Mapping[str, FeatureSchema]
    label: str | None = None

    def feature(self, name: str) -> FeatureSchema:
        """The feature of a name.

        Raises:
            ArgumentError: there is none; the message names those that are alike.
        """
        if name in self.features:
            return self.features[name]
        near = difflib.get_close_matches(name, self.features, n=3) or list(self.features)
        raise ArgumentError(f"The schema has no feature {name!r}. There is: {', '.join(near)}.")

    @property
    def classes(self) -> tuple[Any, ...]:
        """The classes of the label, in order; empty where it is a number or there is none."""
        return () if self.label is None else self.feature(self.label).vocabulary

    def write(self, path: str | Path) -> None:
        """Writes the schema as TOML, for a person to edit."""
        from estimator_inputs.schema.toml_file import written

        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(written(self), encoding="utf-8")

    @classmethod
    def read(cls, path: str | Path) -> Schema:
        """Reads what `write` wrote, and perhaps a person edited.

        Raises:
            ArgumentError: the file cannot be read, or holds what no schema may; the message names line and key.

        Example:
            >>> import tempfile
            >>> from estimator_inputs import learn_schema
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     learn_schema({"size": ["S", "M", "S", "M"]}).write(f"{folder}/schema.toml")
            ...     Schema.read(f"{folder}/schema.toml").feature("size").vocabulary
            ('M', 'S')
        """
        from estimator_inputs.schema.toml_file import parsed

        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ArgumentError(f"{path} cannot be read: {error}.") from error
        return parsed(text, str(path))
