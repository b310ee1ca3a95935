"""What acme-head declares to estimator-core. Imported at start-up: keep it light."""

from __future__ import annotations

from estimator_core.plugins import Component

ESTIMATOR_PLUGIN_API = (1, 0)


def estimator_components() -> list[Component]:
    """The head `acme_head`; its file is imported when somebody asks for it."""
    return [
        Component(
            kind="head",
            name="acme_head",
            target="acme_head.head:AcmeHeadHead",
            summary="Regression with the Huber loss.",
        )
    ]
