"""Describes how two sets of variables differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


class Shaped(Protocol):
    """An object with a shape and a dtype: arrays, `jax.ShapeDtypeStruct`, manifest entries."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> object: ...


@dataclass(frozen=True, kw_only=True)
class VariableDiff:
    """The differences of two sets of variables, `a` and `b`.

    Args:
        only_a, only_b: the names in only one of them, with dtype and shape.
        shapes, dtypes: the values of both sides, for names in both.

    Example:
        >>> import numpy as np
        >>> diff = compare({"w": np.zeros((2, 3)), "b": np.zeros(3)}, {"w": np.zeros((2, 4))})
        >>> print(diff.describe("model", "checkpoint"))
        only in the model:      b  float64[3]
        shape differs:          w  model float64[2,3], checkpoint float64[2,4]
    """

    only_a: Mapping[str, str]
    only_b: Mapping[str, str]
    shapes: Mapping[str, tuple[str, str]]
    dtypes: Mapping[str, tuple[str, str]]

    def __bool__(self) -> bool:
        return bool(self.only_a or self.only_b or self.shapes or self.dtypes)

    def describe(self, a: str, b: str, *, most: int = 20) -> str:
        """Returns one line per difference, and at most `most` of each kind."""
        lines = [
            *_lines(f"only in the {a}:", [f"{name}  {what}" for name, what in self.only_a.items()], most),
            *_lines(f"only in the {b}:", [f"{name}  {what}" for name, what in self.only_b.items()], most),
            *_lines("shape differs:", [f"{n}  {a} {x}, {b} {y}" for n, (x, y) in self.shapes.items()], most),
            *_lines("dtype differs:", [f"{n}  {a} {x}, {b} {y}" for n, (x, y) in self.dtypes.items()], most),
        ]
        return "\n".join(lines)


def compare(a: Mapping[str, Shaped], b: Mapping[str, Shaped]) -> VariableDiff:
    """Compares names, shapes and dtypes, but not values."""
    both = [name for name in a if name in b]
    pairs = {name: (type_text(a[name]), type_text(b[name])) for name in both}
    return VariableDiff(
        only_a={name: type_text(a[name]) for name in a if name not in b},
        only_b={name: type_text(b[name]) for name in b if name not in a},
        shapes={name: pairs[name] for name in both if tuple(a[name].shape) != tuple(b[name].shape)},
        dtypes={
            name: pairs[name]
            for name in both
            if tuple(a[name].shape) == tuple(b[name].shape) and dtype_text(a[name]) != dtype_text(b[name])
        },
    )


def type_text(value: Shaped) -> str:
    """Returns dtype and shape as jax writes them: float32[2,3]."""
    return f"{dtype_text(value)}[{','.join(str(size) for size in value.shape)}]"


def dtype_text(value: Shaped) -> str:
    """Returns the name of the dtype."""
    return str(getattr(value.dtype, "name", value.dtype))


def _lines(head: str, entries: list[str], most: int) -> list[str]:
    shown = entries[:most] + ([f"... and {len(entries) - most} more"] if len(entries) > most else [])
    return [f"{head if index == 0 else '':<24}{entry}" for index, entry in enumerate(shown)]
