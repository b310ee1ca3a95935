"""Whether values fit the instance they are to be loaded into."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from estimator_core.errors import VariableError


def check_names(kind: str, expected: Mapping[str, tuple[int, ...]], values: Mapping[str, Any]) -> None:
    """Refuses values that do not fit an instance.

    Raises:
        VariableError: with a line for each name or shape that differs.
    """
    lines = [f"  - {name}: not given" for name in expected if name not in values]
    lines += [f"  + {name}: not in the instance" for name in values if name not in expected]
    lines += [
        f"  ! {name}: given {tuple(values[name].shape)}, in the instance {tuple(shape)}"
        for name, shape in expected.items()
        if name in values and tuple(values[name].shape) != tuple(shape)
    ]
    if lines:
        raise VariableError(f"The values do not fit this {kind}; nothing was changed:\n" + "\n".join(sorted(lines)))
