"""Many runs with estimator-core: configuration files, sweeps, folds, comparison, replay.

The import of this package imports neither jax nor pydantic: each public name is imported when it is first used.
`__init__.pyi` is the typed list of the names.
"""

import importlib
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "budget.curve": ("Prediction", "extrapolate"),
    "budget.data": ("DataCurve", "data_curve"),
    "budget.rates": ("RateRange", "rate_range"),
    "budget.sizes": ("BatchSize", "batch_sizes"),
    "capsule.differences": ("Difference", "capsule_differences"),
    "capsule.reproducing": ("Reproduced", "reproduce"),
    "capsule.start_records": ("Start", "read_starts"),
    "configuration.layers": ("Layer", "Origin", "Resolved", "resolve"),
    "configuration.problems": ("ConfigurationError", "Problem"),
    "configuration.reading": ("read_configuration", "read_program"),
    "folds.driving": ("open_folds", "run_folds"),
    "folds.ensemble": ("ensemble", "export_ensemble"),
    "folds.fold": ("Folds",),
    "folds.results": ("MetricOverFolds", "metrics_over_folds", "out_of_fold"),
    "folds.rows": ("Rows", "read_rows"),
    "population.driving": ("Trials", "open_population", "run_population"),
    "population.member": ("Member",),
    "population.training": ("Population",),
    "records.comparing": ("Paired", "by_configuration", "differences", "paired_bootstrap"),
    "records.page": ("write_page",),
    "records.reading": ("RunRecord", "read_run", "read_runs", "tag_run"),
    "sweep.driving": ("Search", "open_search", "run_search"),
    "sweep.pruning": ("PruningHook",),
    "sweep.results": ("best_trials", "importances", "write_winner"),
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
