"""Plugins: what packages declare to the core, how they are found, and how the core asks them.

`Component`, `Command`, `Option` and `Kind` are what a plugin module declares; `Plugins` is what the core holds. The
functions a plugin may define are in `estimator_core.hookspecs`.
"""

from estimator_core._plugins import (
    KINDS,
    PLUGIN_API,
    Command,
    Component,
    Kind,
    Option,
    PluginRecord,
    Plugins,
    Registered,
    compare_versions,
    default_plugins,
    hookimpl,
    hookspec,
    plugins_in_use,
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
    "PLUGIN_API",
    "PluginRecord",
    "Plugins",
    "Registered",
    "compare_versions",
    "default_plugins",
    "hookimpl",
    "hookspec",
    "plugins_in_use",
    "using_plugins",
]
