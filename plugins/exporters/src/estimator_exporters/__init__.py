"""Exporters, export formats and serving for estimator-core.

Everything here is imported on first use.
"""

import importlib
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "BeamScorer": "scoring.on_beam",
    "BestExporter": "exporters.best",
    "FinalExporter": "exporters.final",
    "LatestExporter": "exporters.latest",
    "RayScorer": "scoring.on_ray",
    "StepExporter": "exporters.step",
    "log_mlflow_model": "mlflow_flavor.write",
    "save_mlflow_model": "mlflow_flavor.write",
}
#: The public names that need no optional package.
__all__ = [name for name in _HOME if name not in ("BeamScorer", "RayScorer")]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*_HOME, "__version__"])
