"""What estimator-migration declares to estimator-core. Imported at start-up: keep it light."""

from __future__ import annotations

from collections.abc import Sequence

from estimator_core.plugins import Command

ESTIMATOR_PLUGIN_API = (1, 0)


def estimator_commands() -> Sequence[Command]:
    """The command `estimator migrate`."""
    return [
        Command(
            name="migrate",
            target="estimator_migration.cli.migrate",
            summary="From tf.estimator: what becomes of every name that a program uses.",
        )
    ]
