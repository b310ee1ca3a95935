"""Plugins: the declarations of packages to the core, their discovery, and the calls of the core to them.

A plugin module declares `Component`, `Command` and `Option` records. The core uses them through `Plugins`. The
functions that a plugin may define are in `estimator_core.hookspecs`.
"""

from estimator_core._plugins.facade import Plugins as Plugins
from estimator_core._plugins.in_use import default_plugins as default_plugins
from estimator_core._plugins.in_use import plugins_in_use as plugins_in_use
from estimator_core._plugins.in_use import using_plugins as using_plugins
from estimator_core._plugins.records import KINDS as KINDS
from estimator_core._plugins.records import Command as Command
from estimator_core._plugins.records import Component as Component
from estimator_core._plugins.records import Kind as Kind
from estimator_core._plugins.records import Option as Option
from estimator_core._plugins.records import PluginRecord as PluginRecord
from estimator_core._plugins.registry import Registered as Registered
from estimator_core.hookspecs import PLUGIN_API as PLUGIN_API
from estimator_core.hookspecs import hookimpl as hookimpl
from estimator_core.hookspecs import hookspec as hookspec
