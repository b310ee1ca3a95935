"""The declarations of estimator-policy for estimator-core. They are imported at start-up, so keep it light."""

from __future__ import annotations

from collections.abc import Sequence

from estimator_core.plugins import Command

ESTIMATOR_PLUGIN_API = (1, 0)


def estimator_commands() -> Sequence[Command]:
    """Returns the commands `estimator plugins lock` and `estimator plugins policy`, also as `lock` and `policy`."""
    return [
        Command(name="lock", target="estimator_policy.cli.lock", summary="Lock the plugins that runs may use."),
        Command(
            name="policy",
            target="estimator_policy.cli.policy",
            summary="Print the plugin policy in force, and its sources.",
        ),
    ]
