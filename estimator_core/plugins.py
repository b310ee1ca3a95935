"""Plugins: what packages declare to the core, how they are found, and how the core asks them.

`Component`, `Command`, `Option` and `Kind` are what a plugin module declares; `Plugins` is what the core holds. The
functions a plugin may define are in `estimator_core.hookspecs`.
"""

from estimator_core._plugins import (
    KINDS,
    Command,
    Component,
    Kind,
    Option,
    PluginRecord,
    Plugins,
    compare_versions,
    default_plugins,
    hookimpl,
    hookspec,
    using_plugins,
)
from estimator_core._plugins.contract import HOOK_NAMES

__all__ = [
    "Command",
    "Component",
    "HOOK_NAMES",
    "KINDS",
    "Kind",
    "Option",
    "PluginRecord",
    "Plugins",
    "compare_versions",
    "default_plugins",
    "hookimpl",
    "hookspec",
    "using_plugins",
]
