"""The package as a whole: found, light, silent, complete."""

from estimator_core.testing import PluginSuite


class TestPlugin(PluginSuite):
    plugin = "acme_transform"
