"""Exports of a model_fn, for every format: signatures made, written, read back, compared, published and loaded.

Each name is imported at its first use.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "RawSignature": "raw_signature",
    "SupervisedInputReceiver": "supervised",
    "build_supervised_input_receiver_fn_from_input_fn": "supervised",
    "client_transforms": "receiving",
    "load": "loading",
    "make_request": "request",
    "write_export": "writing",
}
__all__ = list(_HOME)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(_HOME)
