"""A report of the values that were loaded into new variables, and of those that were not, with the reasons."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class LoadedVariable:
    """The outcome for one variable.

    Args:
        variable: the path of the variable.
        shape: the shape of the variable.
        source: the actual or intended source of the value; empty for the initialiser.
        tensor: the name in the source.
        loaded: whether the value was replaced.
        reason: the reason that it was not replaced, or the conversion of the value.
    """

    variable: str
    shape: tuple[int, ...]
    source: str = ""
    tensor: str = ""
    loaded: bool
    reason: str = ""


@dataclass(frozen=True)
class LoadReport:
    """The outcomes for all variables of a model. It prints as a table.

    Example:
        >>> print(LoadReport((LoadedVariable(variable="head/bias", shape=(2,), loaded=False, reason="not in /old"),)))
        variable   shape  loaded  from         remark
        head/bias  [2]    no      initializer  not in /old
    """

    rows: tuple[LoadedVariable, ...]

    @property
    def loaded(self) -> tuple[str, ...]:
        """The paths of the variables whose values were replaced."""
        return tuple(row.variable for row in self.rows if row.loaded)

    @property
    def not_loaded(self) -> dict[str, str]:
        """The reason for each of the other variables."""
        return {row.variable: row.reason for row in self.rows if not row.loaded}

    def __str__(self) -> str:
        table = [("variable", "shape", "loaded", "from", "remark")]
        for row in self.rows:
            origin = (
                f"{row.tensor} of {row.source}"
                if row.loaded and row.tensor
                else row.source
                if row.loaded
                else "initializer"
            )
            shape = "[" + ",".join(map(str, row.shape)) + "]"
            table.append((row.variable, shape, "yes" if row.loaded else "no", origin, row.reason))
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = ("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in table)
        return "\n".join(line.rstrip() for line in lines)
