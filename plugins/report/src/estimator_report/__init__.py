"""Writes one self-contained HTML page about a run, to which plugins add sections.

The import of this package does not import jax, because every public name is imported when it is first used.
`__init__.pyi` is the typed list of the names.
"""

import importlib
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "contract": ("ReportSection", "ReportSource"),
    "curve_counts": ("report_metrics",),
    "page": ("build_page", "replace_page", "write_report"),
    "source": ("read_source",),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}
__all__ = list(_MODULE_OF)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULE_OF])
