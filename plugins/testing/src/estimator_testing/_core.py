"""The private names of the core that this kit uses. No other file of the kit uses private modules.

The kit belongs to the core and is released with it. A change of one of these names changes it here too. Other packages
use public modules only. A name is imported when it is first used, so the fresh process that observes the import of a
plugin (`probe`) does not import jax itself.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from estimator_core._hook_members import METHODS as METHODS
    from estimator_core._hook_members import RESERVED as RESERVED
    from estimator_core._jax_values import is_traced as is_traced
    from estimator_core._journal.entries import decode as decode
    from estimator_core._journal.entries import digest_of as digest_of
    from estimator_core._journal.lineage import add as add
    from estimator_core._journal.reading import key_of_snapshot as key_of_snapshot
    from estimator_core._journal.reading import write_snapshot as write_snapshot
    from estimator_core._loop.agreement import NOBODY_ASKS as NOBODY_ASKS
    from estimator_core._loop.dispatch import Dispatch as Dispatch
    from estimator_core._loop.hook_calls import HookCalls as HookCalls
    from estimator_core._loop.hook_calls import in_order as in_order
    from estimator_core._loop.hook_schedule import HookSchedule as HookSchedule
    from estimator_core._loop.run import LoopRun as LoopRun
    from estimator_core._loop.time_spent import TimeSpent as TimeSpent
    from estimator_core._model.adapter import Trainable as Trainable
    from estimator_core._model.initialize import initialize as initialize
    from estimator_core._model.initialize import seed_words as seed_words
    from estimator_core._model.initialize import step_key as step_key
    from estimator_core._model.scope import Scope as Scope
    from estimator_core._model.scope import applying as applying
    from estimator_core._model.scope import declaring as declaring
    from estimator_core._moved import MOVED as MOVED
    from estimator_core._moved import MOVED_MODULES as MOVED_MODULES
    from estimator_core._plugins.discovery import builtin_candidate as builtin_candidate
    from estimator_core._plugins.discovery import core_version as core_version
    from estimator_core._plugins.discovery import installed_candidates as installed_candidates
    from estimator_core._plugins.loader import HEAVY_PACKAGES as HEAVY_PACKAGES
    from estimator_core._plugins.plugin_code import import_target as import_target
    from estimator_core._plugins.registry import remedy as remedy
    from estimator_core._plugins.settings import normalise as normalise
    from estimator_core._storage.contract import check_key as check_key

_HOME = {
    "HEAVY_PACKAGES": "_plugins.loader",
    "NOBODY_ASKS": "_loop.agreement",
    "Dispatch": "_loop.dispatch",
    "HookCalls": "_loop.hook_calls",
    "HookSchedule": "_loop.hook_schedule",
    "LoopRun": "_loop.run",
    "TimeSpent": "_loop.time_spent",
    "METHODS": "_hook_members",
    "MOVED": "_moved",
    "MOVED_MODULES": "_moved",
    "RESERVED": "_hook_members",
    "Scope": "_model.scope",
    "Trainable": "_model.adapter",
    "add": "_journal.lineage",
    "applying": "_model.scope",
    "builtin_candidate": "_plugins.discovery",
    "check_key": "_storage.contract",
    "core_version": "_plugins.discovery",
    "declaring": "_model.scope",
    "decode": "_journal.entries",
    "digest_of": "_journal.entries",
    "import_target": "_plugins.plugin_code",
    "in_order": "_loop.hook_calls",
    "initialize": "_model.initialize",
    "installed_candidates": "_plugins.discovery",
    "is_traced": "_jax_values",
    "key_of_snapshot": "_journal.reading",
    "normalise": "_plugins.settings",
    "remedy": "_plugins.registry",
    "seed_words": "_model.initialize",
    "step_key": "_model.initialize",
    "write_snapshot": "_journal.reading",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"estimator_core.{_HOME[name]}"), name)
