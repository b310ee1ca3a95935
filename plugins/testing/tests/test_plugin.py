"""The plugin as installed keeps the contract of plugins."""

from estimator_testing import PluginSuite


class TestPlugin(PluginSuite):
    plugin = "testing"
