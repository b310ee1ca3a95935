"""What acme-model declares to estimator-core. Imported at start-up: keep it light."""

from __future__ import annotations

from estimator_core.plugins.records import Component

ESTIMATOR_PLUGIN_API = (1, 0)


def estimator_components() -> list[Component]:
    """The model `acme_model`; its file is imported when somebody asks for it."""
    return [
        Component(
            kind="model",
            name="acme_model",
            target="acme_model.model:AcmeModelRegressor",
            summary="Regression with one hidden layer.",
        )
    ]
