"""The declarations of estimator-testing for estimator-core. They are imported at start-up, so keep it light."""

from __future__ import annotations

from estimator_core.plugins import Command

ESTIMATOR_PLUGIN_API = (1, 0)


def estimator_commands() -> list[Command]:
    """Returns the commands for authors of plugins. `estimator plugins doctor NAME` of the core forwards to `doctor`."""
    return [
        Command(
            name="plugin-doctor",
            target="estimator_testing.cli.doctor",
            summary="Examine an installed plugin; the same as plugins doctor NAME.",
        ),
        Command(
            name="new-plugin",
            target="estimator_testing.cli.new_plugin",
            summary="Write a complete plugin package to start from.",
        ),
    ]
