"""What acme-adapter declares to estimator-core. Imported at start-up: keep it light."""

from __future__ import annotations

from estimator_core.plugins import Component

ESTIMATOR_PLUGIN_API = (1, 0)


def estimator_components() -> list[Component]:
    """The adapter `acme_adapter`; its file is imported when somebody asks for it."""
    return [
        Component(
            kind="adapter",
            name="acme_adapter",
            target="acme_adapter.adapter:AcmeAdapterAdapter",
            summary="Dense layers of a library of one class.",
        )
    ]
