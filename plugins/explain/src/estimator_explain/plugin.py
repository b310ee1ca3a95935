"""The declarations of estimator-explain for estimator-core. They are imported at start-up, so keep it light."""

from __future__ import annotations

from collections.abc import Sequence

from estimator_core.plugins import Command, Component

ESTIMATOR_PLUGIN_API = (1, 2)


def estimator_components() -> Sequence[Component]:
    """Returns the section of the report."""
    return [
        Component(
            kind="report_section",
            name="explanations",
            target="estimator_explain.section:ExplanationSection",
            summary="The importance of features, and attributions.",
        )
    ]


def estimator_commands() -> Sequence[Command]:
    """Returns the command `estimator explain`."""
    return [
        Command(
            name="explain",
            target="estimator_explain.cli.explain",
            summary="Show the features that metrics and predictions of a model depend on.",
        )
    ]
