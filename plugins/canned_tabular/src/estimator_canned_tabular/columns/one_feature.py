"""What columns of one categorical feature have in common."""

from __future__ import annotations

from typing import Any

from estimator_core.export import VarLenFeature


class OneFeature:
    """Any number of values of one feature, which also names the column; records with these fields inherit it.

    Attributes:
        key: the feature's name.
        dtype: of the feature in a tf.Example.
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
        """Any number of values."""
        return {self.key: VarLenFeature(self.dtype)}
