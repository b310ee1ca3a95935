"""The installed plugin fulfils the contract of plugins."""

from estimator_core.testing import PluginSuite


class TestPlugin(PluginSuite):
    plugin = "tables"
