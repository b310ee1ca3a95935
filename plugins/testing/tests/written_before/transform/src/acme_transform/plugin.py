"""What acme-transform declares to estimator-core. Imported at start-up: keep it light."""

from __future__ import annotations

from estimator_core.plugins import Component

ESTIMATOR_PLUGIN_API = (1, 0)


def estimator_components() -> list[Component]:
    """The transform `acme_transform`; its file is imported when somebody asks for it."""
    return [
        Component(
            kind="transform",
            name="acme_transform",
            target="acme_transform.transform:AcmeTransformScale",
            summary="Scales a feature by mean and deviation.",
        )
    ]
