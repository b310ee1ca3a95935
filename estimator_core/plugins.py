"""Plugins: the declarations of packages, how they are found, and how the core uses them.

A plugin module declares `Component`, `Command`, `Option` and `Kind` records. The core uses a `Plugins` object. The
functions that a plugin may define are in `estimator_core.hookspecs`.
"""

from estimator_core._plugins import Plugins, default_plugins, using_plugins
from estimator_core._plugins.contract import HOOK_NAMES
from estimator_core._plugins.deprecation import warn_deprecated
from estimator_core._plugins.discovery import plugins_to_lock
from estimator_core._plugins.manifest import compare_versions
from estimator_core._plugins.plugin_code import code_hash
from estimator_core._plugins.records import KINDS, Command, Component, Kind, Option, PluginRecord
from estimator_core._plugins.settings import LOCK_FILE, Policy, normalise, option_variable, policy_files
from estimator_core.hookspecs import hookimpl, hookspec

__all__ = [
    "Command",
    "Component",
    "HOOK_NAMES",
    "KINDS",
    "Kind",
    "LOCK_FILE",
    "Option",
    "PluginRecord",
    "Plugins",
    "Policy",
    "code_hash",
    "compare_versions",
    "default_plugins",
    "hookimpl",
    "hookspec",
    "normalise",
    "option_variable",
    "plugins_to_lock",
    "policy_files",
    "using_plugins",
    "warn_deprecated",
]
