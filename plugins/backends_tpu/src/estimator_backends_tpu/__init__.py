"""TPU backend for estimator-core: probe, pods, device figures, topologies to compile for, and TPUEstimator.

The import of this package does not import jax, because each name is imported when it is first used.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from estimator_backends_tpu.backend import TPUBackend as TPUBackend
    from estimator_backends_tpu.config import InputPipelineConfig as InputPipelineConfig
    from estimator_backends_tpu.config import TPUConfig as TPUConfig
    from estimator_backends_tpu.config import TPURunConfig as TPURunConfig
    from estimator_backends_tpu.devices import FIGURES as FIGURES
    from estimator_backends_tpu.estimator import TPUEstimator as TPUEstimator
    from estimator_backends_tpu.flags import configure as configure
    from estimator_backends_tpu.spec import TPUEstimatorSpec as TPUEstimatorSpec

__version__ = "0.1.0"

_HOME = {
    "FIGURES": "devices",
    "InputPipelineConfig": "config",
    "TPUBackend": "backend",
    "TPUConfig": "config",
    "TPUEstimator": "estimator",
    "TPUEstimatorSpec": "spec",
    "TPURunConfig": "config",
    "configure": "flags",
}
__all__ = list(_HOME)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
