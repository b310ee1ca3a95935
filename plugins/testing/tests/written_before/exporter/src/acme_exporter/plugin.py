"""What acme-exporter declares to estimator-core. Imported at start-up: keep it light."""

from __future__ import annotations

from estimator_core.plugins import Component

ESTIMATOR_PLUGIN_API = (1, 0)


def estimator_components() -> list[Component]:
    """The exporter `acme_exporter`; its file is imported when somebody asks for it."""
    return [
        Component(
            kind="exporter",
            name="acme_exporter",
            target="acme_exporter.exporter:AcmeExporterExporter",
            summary="Exports once a metric has reached a goal.",
        )
    ]
