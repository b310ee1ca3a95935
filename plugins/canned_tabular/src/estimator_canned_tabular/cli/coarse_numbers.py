"""Numbers whose differences are lost in float32, which training and exports read: milliseconds, long ids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from estimator_canned_tabular.cli.profile import LARGEST, ColumnProfile
from estimator_canned_tabular.cli.schema import Schema


def coarse_numbers(schema: Schema, profiles: Mapping[str, ColumnProfile]) -> Iterator[str]:
    """Yields a line for each column of numbers if at most half of its different values are different in float32.

    Example:
        >>> profile = ColumnProfile()
        >>> profile.add([b"1700000000001", b"1700000000002", b"1700000000003"])
        >>> from estimator_canned_tabular.cli.schema import ColumnSchema
        >>> schema = Schema(label="y", columns={"x": ColumnSchema(kind="numeric")})
        >>> list(coarse_numbers(schema, {"x": profile}))
        ['read coarsely: x, of whose 3 different numbers float32 keeps 1. Subtract the smallest one in the file']
    """
    names = [name for name, column in schema.columns.items() if column.kind == "numeric"]
    names += [] if schema.classes else [schema.label]
    for name in names:
        words = profiles[name].words if name in profiles and profiles[name].numbers else {}
        exact = np.unique([float(word) for word in words])
        exact = exact[np.abs(exact) <= LARGEST]
        kept = np.unique(exact.astype(np.float32)).size
        if 0 < 2 * kept <= exact.size:
            yield (
                f"read coarsely: {name}, of whose {exact.size} different numbers float32 keeps {kept}. "
                "Subtract the smallest one in the file"
            )
