"""First values in their order: initialisers, warm start, `init_from_checkpoint`, `Scaffold.init_fn`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from estimator_core._model.checkpoint_values import fitted, near
from estimator_core._model.init_request import CheckpointReader, InitRequest
from estimator_core._model.load_report import LoadedVariable, LoadReport
from estimator_core._model.variables import VariableSpec
from estimator_core._model.warm_start import WarmStartSettings, warm_start
from estimator_core.errors import VariableError


def replaced_values(
    values: Mapping[str, Any],
    specs: Mapping[str, VariableSpec],
    *,
    reader: CheckpointReader,
    seed: int,
    settings: WarmStartSettings | None = None,
    requests: Sequence[InitRequest] = (),
    init_fn: Callable[[dict[str, Any]], Mapping[str, Any]] | None = None,
) -> tuple[dict[str, np.ndarray], LoadReport]:
    """Computes on the host which initial values are replaced; later sources win over earlier ones.

    For a run without a checkpoint only: a checkpoint wins over all of this.

    Args:
        values: the values that the initialisers gave, by path.
        specs: the variables, by path.
        reader: reads checkpoints.
        seed: the seed of the run.
        settings: of `warm_start_from`, None without one.
        requests: of `ec.init_from_checkpoint`.
        init_fn: of the `Scaffold`, None without one.

    Returns:
        The values to put in place, by path, of the shapes and dtypes of `specs`; and the outcome for every variable.

    Raises:
        VariableError: a value does not fit.
    """
    replaced: dict[str, np.ndarray] = {}
    rows = {path: LoadedVariable(variable=path, shape=spec.shape, loaded=False) for path, spec in specs.items()}
    if settings is not None:
        replaced, rows = warm_start(settings, specs, reader=reader, seed=seed)
    for request in requests:
        tensors = (request.reader or reader)(request.checkpoint)
        for tensor, path in request.assignments:
            replaced[path], remark = fitted(specs[path], tensor, tensors, request.checkpoint)
            rows[path] = LoadedVariable(
                variable=path,
                shape=specs[path].shape,
                source=request.checkpoint,
                tensor=tensor,
                loaded=True,
                reason=remark,
            )
    if init_fn is not None:
        given = init_fn({path: np.array(replaced.get(path, values[path])) for path in specs})
        for path, value in _checked(given, specs).items():
            replaced[path] = value
            rows[path] = LoadedVariable(variable=path, shape=specs[path].shape, source="Scaffold.init_fn", loaded=True)
    return replaced, LoadReport(tuple(rows.values()))


def _checked(given: Any, specs: Mapping[str, VariableSpec]) -> dict[str, np.ndarray]:
    if not isinstance(given, Mapping):
        raise VariableError(
            f"Scaffold(init_fn=...) returned {type(given).__name__}. It must return a dict of the values to "
            "replace, by path."
        )
    checked: dict[str, np.ndarray] = {}
    for path, value in given.items():
        if path not in specs:
            raise VariableError(
                f"Scaffold(init_fn=...) returned a value for {path!r}, which is no variable. {near(str(path), specs)}"
            )
        checked[path], _ = fitted(specs[path], path, {path: np.asarray(value)}, "Scaffold(init_fn=...)")
    return checked
