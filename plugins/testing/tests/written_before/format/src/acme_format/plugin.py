"""What acme-format declares to estimator-core. Imported at start-up: keep it light."""

from __future__ import annotations

from estimator_core.plugins import Component

ESTIMATOR_PLUGIN_API = (1, 0)


def estimator_components() -> list[Component]:
    """The format `acme_format`; its file is imported when somebody asks for it."""
    return [
        Component(
            kind="format",
            name="acme_format",
            target="acme_format.format:AcmeFormatFormat",
            summary="Programs, weights and manifest in files with checksums.",
        )
    ]
