"""The suite for a plugin package as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import ClassVar

from estimator_testing import plugin_checks as checks
from estimator_testing.suite import Suite


class PluginSuite(Suite):
    """Proves that an installed plugin is light, deterministic and complete. Subclass it and name the plugin.

    Example:
        >>> class TestPlugin(PluginSuite):
        ...     plugin = "heads"
    """

    #: The name of the entry point, or of the distribution.
    plugin: ClassVar[str]

    def test_loads(self) -> None:
        """It can be imported, keeps the contract, and is the same when loaded twice."""
        self._apply(checks.check_loads)

    def test_import_is_light(self) -> None:
        """Its import imports no heavy package."""
        self._apply(checks.check_import_is_light)

    def test_import_is_silent(self) -> None:
        """Its import prints nothing."""
        self._apply(checks.check_import_is_silent)

    def test_import_changes_nothing(self) -> None:
        """Its import changes nothing in the process."""
        self._apply(checks.check_import_changes_nothing)

    def test_order_is_fixed(self) -> None:
        """Its declarations have the same order in every process."""
        self._apply(checks.check_order_is_fixed)

    def test_targets_exist(self) -> None:
        """Every component's target can be imported and called."""
        self._apply(checks.check_targets_exist)

    def test_needs(self) -> None:
        """A hook or exporter that cannot be made from a name and arguments as text declares what it needs."""
        self._apply(checks.check_needs)

    def test_commands_work(self) -> None:
        """Every command's module has `configure(parser)`, `run(args)` and a docstring."""
        self._apply(checks.check_commands_work)

    def test_names_are_free(self) -> None:
        """No other installed plugin offers anything of the same kind and name."""
        self._apply(checks.check_names_are_free)

    def test_summaries(self) -> None:
        """Everything that it declares has a description of one line."""
        self._apply(checks.check_summaries)

    def test_signatures(self) -> None:
        """The arguments of its hook functions are in the specification, without defaults."""
        self._apply(checks.check_signatures)

    def test_run_hooks(self) -> None:
        """Its run-level hooks work on a run of each mode, and return new Hook objects each time."""
        self._apply(checks.check_run_hooks)

    def test_network_is_declared(self) -> None:
        """It declares "network" if its run-level hooks look up or connect to another machine."""
        self._apply(checks.check_network_is_declared)

    def test_requires_the_core(self) -> None:
        """Its distribution requires estimator-core within two bounds, and the packages that define its kinds."""
        self._apply(checks.check_requires_the_core)

    def test_requirements_are_met(self) -> None:
        """The packages that its distribution requires are installed, in versions that it accepts."""
        self._apply(checks.check_requirements_are_met)

    def _apply(self, check: Callable[[checks.Examined], Iterator[str]]) -> None:
        faults = list(check(_examined(self.plugin)))
        assert not faults, "; ".join(faults)


@cache
def _examined(plugin: str) -> checks.Examined:
    """Examines a plugin once for all its tests, because the examination starts two processes."""
    return checks.examine_plugin(plugin)
