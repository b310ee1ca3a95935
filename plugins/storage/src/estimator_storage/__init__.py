"""Object stores for estimator-core: S3, Azure Blob Storage, Google Cloud Storage, and an examination of any storage.

Each name is imported at its first use.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "Finding": "doctor",
    "examine": "doctor",
    "open_azure": "azure",
    "open_gcs": "gcs",
    "open_s3": "s3",
}
__all__ = list(_HOME)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(_HOME)
