"""Processes tell each other what they are about to do, before they do anything together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax

from estimator_core._cluster.together import gather
from estimator_core._plugins import Plugins
from estimator_core.coordinator import Coordinator
from estimator_core.errors import ArgumentError
from estimator_core.hooks import Hook


def announce(
    processes: Coordinator, call: str, *, hooks: Sequence[Hook], plugins: Plugins, **arguments: object
) -> None:
    """Returns when all processes have come with the same call.

    Args:
        processes: those that compute together.
        call: what is called.
        hooks: of the call, without those that plugins add.
        plugins: whose versions must be the same, as jax's.
        arguments: those that decide how long the call takes and what it is about: numbers, text, or lists of them.

    Raises:
        ArgumentError: they have not; raised in all of them.
        ProcessLostError: a process is gone.
    """
    if processes.count == 1:
        return
    kinds = [f"{type(hook).__module__}.{type(hook).__qualname__}" for hook in hooks]
    versions = [f"jax {jax.__version__}", *(f"{one['distribution']} {one['version']}" for one in plugins.versions())]
    own = {"call": call, **arguments, "hooks": kinds, "versions": versions}
    told = gather(processes, "call", own)
    for index, other in enumerate(told):
        if other != told[0]:
            raise ArgumentError(
                f"Processes 0 and {index} of {processes.count} do not do the same: {_in_words(0, told[0], other)}; "
                f"{_in_words(index, other, told[0])}. All processes run one program with the same arguments: what only "
                "the first shall do belongs into a hook or an exporter."
            )


def _in_words(index: int, one: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    differs = [f"{name}={value!r}" for name, value in one.items() if name != "call" and other.get(name) != value]
    return f"process {index} calls {one['call']}({', '.join(differs) or '...'})"
