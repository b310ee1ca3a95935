"""What acme-backend declares to estimator-core. Imported at start-up: keep it light."""

from __future__ import annotations

from estimator_core.plugins.records import Component

ESTIMATOR_PLUGIN_API = (1, 0)


def estimator_components() -> list[Component]:
    """The backend `acme_backend`; its file is imported when somebody asks for it."""
    return [
        Component(
            kind="backend",
            name="acme_backend",
            target="acme_backend.backend:AcmeBackendBackend",
            summary="Some of the processors of this machine.",
        )
    ]
