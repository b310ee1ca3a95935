"""Values of every step, for the hooks that follow an output."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Sequence
from typing import Any

import numpy as np

from estimator_core._loop.hook_calls import HookCalls, describe
from estimator_core._loop.outputs import LazyOutputs

_log = logging.getLogger("estimator_core")
#: Dispatches that are kept before their values are delivered.
_BUFFER = 256


class Streams:
    """Keeps the outputs that hooks follow, and delivers them in bulk, in order.

    Args:
        followers: hooks and the names of the outputs they follow.
        calls: calls them.
    """

    def __init__(self, followers: Sequence[tuple[Any, Sequence[str]]], calls: HookCalls) -> None:
        self._followers, self._calls = list(followers), calls
        self._wanted = {name for _, names in followers for name in names}
        self._buffer: list[LazyOutputs] = []
        self._warned: list[Any] = []

    def __bool__(self) -> bool:
        return bool(self._followers)

    def add(self, outputs: LazyOutputs) -> None:
        """Keeps the outputs of a dispatch."""
        self._buffer.append(outputs.only(self._wanted))
        if len(self._buffer) >= _BUFFER:
            self.hand_over(keep=2)  # the newest may still be running

    def hand_over_to(self, step: int) -> None:
        """Delivers the values of the dispatches up to a step."""
        self.hand_over(keep=sum(part.steps.start > step for part in self._buffer))

    def hand_over(self, keep: int = 0) -> None:
        """Delivers what has been collected, except for the newest `keep` dispatches."""
        ready, self._buffer = self._buffer[: len(self._buffer) - keep], self._buffer[len(self._buffer) - keep :]
        if not ready:
            return
        for hook, names in self._followers:
            for present, run in itertools.groupby(ready, key=lambda part: tuple(n for n in names if n in part)):
                parts = list(run)
                steps = range(parts[0].steps.start, parts[-1].steps.stop)
                if len(present) < len(names):
                    self._warn_of_gap(hook, sorted(set(names) - set(present)), steps.start)
                if present:
                    values = {name: np.concatenate([part.all(name) for part in parts]) for name in present}
                    self._calls.tell(hook, "on_values", steps, values)

    def _warn_of_gap(self, hook: Any, missing: Sequence[str], step: int) -> None:
        """Warns once per hook: a model_fn may return other outputs for another batch shape."""
        if not any(hook is warned for warned in self._warned):
            self._warned.append(hook)
            _log.warning(
                "%s wants values of every step; step %d has no output %s, which is skipped where it is missing.",
                describe(hook),
                step,
                ", ".join(map(repr, missing)),
            )
