"""What estimator-plan declares to estimator-core. Imported at start-up: keep it light."""

from __future__ import annotations

from collections.abc import Sequence

from estimator_core.plugins import Command

ESTIMATOR_PLUGIN_API = (1, 0)


def estimator_commands() -> Sequence[Command]:
    """The command `estimator plan`."""
    return [
        Command(
            name="plan",
            target="estimator_plan.cli.plan",
            summary="Compile the training step for devices that are not there: memory, operations, time.",
        )
    ]
