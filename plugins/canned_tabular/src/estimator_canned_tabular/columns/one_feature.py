"""The common part of columns that read one categorical feature."""

from __future__ import annotations

from typing import Any

from estimator_core.export import VarLenFeature


class OneFeature:
    """A column that reads any number of values of one feature and has its name. Records with these fields inherit it.

    Attributes:
        key: the name of the feature.
        dtype: the dtype of the feature in a tf.Example.
    """

    key: str
    dtype: str

    @property
    def name(self) -> str:
        """The key."""
        return self.key

    @property
    def keys(self) -> tuple[str, ...]:
        """The feature's name."""
        return (self.key,)

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """The feature with any number of values."""
        return {self.key: VarLenFeature(self.dtype)}
