"""The components of estimator-modules. Imported at start-up: keep it light."""

from __future__ import annotations

from collections.abc import Sequence

from estimator_core.plugins import Component

ESTIMATOR_PLUGIN_API = (1, 0)

_ADAPTERS = (
    ("equinox", "EquinoxAdapter", "Modules of Equinox."),
    ("keras", "KerasAdapter", "Layers and models of Keras 3 on its JAX backend."),
    ("linen", "LinenAdapter", "Modules of Flax Linen."),
    ("nnx", "NnxAdapter", "Modules of Flax NNX."),
)


def estimator_components() -> Sequence[Component]:
    """Returns one adapter for each library. A library is imported only by the programs that use it."""
    return [
        Component(kind="adapter", name=name, target=f"estimator_modules.{name}_adapter:{class_}", summary=summary)
        for name, class_, summary in _ADAPTERS
    ]
