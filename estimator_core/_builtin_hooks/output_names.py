"""Names of step outputs that a hook was given: refused when unknown, skipped when one dispatch lacks them."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Collection, Iterable
from typing import Any

from estimator_core.errors import ArgumentTypeError, HookError
from estimator_core.hooks import StepOutputs

_log = logging.getLogger("estimator_core")


def checked_types(owner: str, names: Iterable[Any]) -> list[str]:
    """Returns the names as a list.

    Raises:
        ArgumentTypeError: a value is not a name but, for example, an array.
    """
    checked = list(names)
    for name in checked:
        if not isinstance(name, str):
            raise ArgumentTypeError(
                f"{owner}: hooks refer to values by name, given: {type(name).__name__}. Name the value in model_fn "
                "with ec.tensor(name, value) or ec.summary.scalar(name, value) and give that name."
            )
    return checked


def check_known(owner: str, names: Iterable[str], available: Collection[str]) -> None:
    """Refuses names that no step of this run produces.

    Raises:
        HookError: a name is unknown. The message shows a near match.
    """
    for name in names:
        if name not in available:
            near = difflib.get_close_matches(name, available, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise HookError(
                f"{owner}: this run has no output {name!r}.{hint} There are: {sorted(available)}. "
                "Name a value in model_fn with ec.tensor or ec.summary.scalar."
            )


class PresentNames:
    """Finds which of some names a dispatch has, and warns once about each missing name.

    A model_fn may produce other outputs for another batch shape.
    """

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._warned: set[str] = set()

    def of(self, names: Iterable[str], out: StepOutputs, step: int) -> list[str]:
        """The names that this dispatch has, in the given order."""
        here = set(iter(out))
        present: list[str] = []
        for name in names:
            if name in here:
                present.append(name)
            elif name not in self._warned:
                self._warned.add(name)
                _log.warning(
                    "%s: step %d has no output %r; it is skipped where it is missing.", self._owner, step, name
                )
        return present
