"""Plugins: what packages declare to the core, how they are found, and how the core asks them.

`Component`, `Command` and `Option` are what a plugin module declares; `Plugins` is what the core holds. The functions a
plugin may define are in `estimator_core.hookspecs`.
"""

from estimator_core._plugins.facade import Plugins as Plugins
from estimator_core._plugins.shared import default_plugins as default_plugins
from estimator_core._plugins.shared import plugins_in_use as plugins_in_use
from estimator_core._plugins.shared import using_plugins as using_plugins
