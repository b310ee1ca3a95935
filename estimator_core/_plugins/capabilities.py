"""The capabilities of plugins that affect runs without being requested: declared, and enforced."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from estimator_core._wrong_arguments import suggestion
from estimator_core.errors import PluginError

#: Capability -> its text in the opening line of a run.
CAPABILITIES: Mapping[str, str] = MappingProxyType(
    {
        "adds_hooks": "hooks added to every run by",
        "changes_batches": "batches may be changed by",
        "reads_metrics": "results of evaluations are read by",
        "rehearses": "runs may be tried before they begin by",
        "network": "the network is used by",
        "priority": "preferred to built-ins by default",
    }
)
#: Hook specification -> the capability that an implementation requires.
_NEEDED = {
    "estimator_run_hooks": "adds_hooks",
    "estimator_evaluation_finished": "reads_metrics",
    "estimator_rehearse": "rehearses",
}
#: The first contract with declarations. Plugins for an older one count as declaring everything that they implement.
_DECLARED_SINCE = (1, 2)
#: Members of a run that change it.
_CHANGES = ("transform_batches", "request_stop", "fetch", "follow", "add_result", "assign", "swapped")
#: Members with parts that a reader could change. An observer receives a copy.
_COPIED = ("params", "batch", "texts", "output_kinds")
_NO_BATCHES = "its plugin does not declare 'changes_batches' (estimator_capabilities)"


def capabilities_of(declared: Sequence[Any], implemented: Iterable[str], api: tuple[int, int]) -> tuple[str, ...]:
    """Returns the capabilities of a plugin, sorted.

    Args:
        declared: the result of `estimator_capabilities`.
        implemented: the names of the hook specifications that the plugin implements.
        api: the contract version for which the plugin was written.

    Raises:
        PluginError: a capability does not exist, or a required one is not declared.

    Example:
        >>> capabilities_of(["network"], [], (1, 2)), capabilities_of([], ["estimator_run_hooks"], (1, 1))
        (('network',), ('adds_hooks', 'changes_batches'))
    """
    for name in declared:
        if name not in CAPABILITIES:
            hint = suggestion(name, CAPABILITIES, f"capabilities are {', '.join(CAPABILITIES)}")
            raise PluginError(f"estimator_capabilities() returned {name!r}, which is not a capability; {hint}")
    needed = {specification: _NEEDED[specification] for specification in implemented if specification in _NEEDED}
    if api < _DECLARED_SINCE:
        batches = ["changes_batches"] if "estimator_run_hooks" in needed else []
        return tuple(sorted({*declared, *needed.values(), *batches}))
    for specification, capability in needed.items():
        if capability not in declared:
            cure = f"add it to what estimator_capabilities() returns, or leave {specification} out"
            raise PluginError(f"it implements {specification} and does not declare {capability!r}: {cure}")
    return tuple(sorted(set(declared)))


class View:
    """A view of a run that refuses some members. All others are those of the run.

    Args:
        run: the run.
        who: the name in the error about a refused member.
        refused: the names of the refused members.
        why: the reason, as the end of the message.
        shown: the names of the only other members. None: all members of the run.
        copied: the names of the members that return copies.
    """

    def __init__(
        self,
        run: object,
        who: str,
        refused: Sequence[str],
        why: str,
        *,
        shown: Iterable[str] | None = None,
        copied: Sequence[str] = (),
    ) -> None:
        vars(self).update(_run=run, _who=who, _refused=refused, _why=why, _shown=shown, _copied=copied)

    def __getattr__(self, name: str) -> Any:
        if name in self._refused:
            raise PluginError(f"{self._who} may not use run.{name}: {self._why}")
        if self._shown is not None and name not in self._shown:
            raise AttributeError(f"a run has no {name!r}: estimator_core.hooks.Run lists its attributes")
        found = getattr(self._run, name)
        return copy.deepcopy(found) if name in self._copied else found

    def __setattr__(self, name: str, value: object) -> None:
        raise PluginError(f"{self._who} may not set run.{name}: {self._why}")


def observed(run: object, who: str) -> View:
    """Returns the run for an observer: the members of the contract, except those that change it."""
    from estimator_core.hooks import Run

    why = "observers only read; a hook of estimator_run_hooks may change a run"
    return View(run, who, _CHANGES, why, shown=vars(Run).keys(), copied=_COPIED)


def adding_hooks(run: object, who: str, capabilities: Sequence[str]) -> Any:
    """Returns the run for `estimator_run_hooks`, which may not change batches unless the plugin declares it."""
    return run if "changes_batches" in capabilities else View(run, who, ("transform_batches",), _NO_BATCHES)


def read_only(metrics: Mapping[str, object]) -> Mapping[str, Any]:
    """Returns results for an observer, which cannot change them or their arrays."""
    return MappingProxyType({name: _frozen(value) for name, value in metrics.items()})


def without_batches(hook: Any, who: str) -> None:
    """Prevents a hook from changing batches.

    Raises:
        PluginError: the hook has `__slots__`, so it cannot be prevented. Or, later, the hook changes batches.
    """
    begin = hook.begin

    def guarded(run: object) -> None:
        begin(View(run, who, ("transform_batches",), _NO_BATCHES))

    try:
        object.__setattr__(hook, "begin", guarded)
    except AttributeError as error:
        raise PluginError(
            f"returned a hook with __slots__, so it cannot be prevented from changing batches; {_NO_BATCHES}"
        ) from error


def _frozen(value: object) -> Any:
    import numpy as np

    if not isinstance(value, np.ndarray):
        return value
    copy = value.copy()
    copy.flags.writeable = False
    return copy
