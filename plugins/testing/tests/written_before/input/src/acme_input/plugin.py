"""What acme-input declares to estimator-core. Imported at start-up: keep it light."""

from __future__ import annotations

from estimator_core.plugins.records import Component

ESTIMATOR_PLUGIN_API = (1, 0)


def estimator_components() -> list[Component]:
    """The input `acme_input`; its file is imported when somebody asks for it."""
    return [
        Component(
            kind="input",
            name="acme_input",
            target="acme_input.input:acme_input_input_fn",
            summary="Numbers from a text file, the label last.",
        )
    ]
