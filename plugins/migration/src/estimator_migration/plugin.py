"""The declarations of estimator-migration for estimator-core. They are imported at start-up, so keep it light."""

from __future__ import annotations

from collections.abc import Sequence

from estimator_core.plugins import Command

ESTIMATOR_PLUGIN_API = (1, 0)


def estimator_commands() -> Sequence[Command]:
    """Returns the command `estimator migrate`."""
    return [
        Command(
            name="migrate",
            target="estimator_migration.cli.migrate",
            summary="Migrate a program of tf.estimator, or its checkpoints.",
        )
    ]
