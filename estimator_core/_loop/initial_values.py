"""Replaces initial values: warm start, requests of model_fn, Scaffold. Each overrides the previous ones."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from estimator_core._hook_members import refuse_misfit
from estimator_core._model.initial_values import InitialValue, InitialValues
from estimator_core._model.initialize import seed_words, variable_key
from estimator_core._model.variables import VariableSpec
from estimator_core._plugins import Plugins, using_plugins
from estimator_core._plugins.discovery import describe, noting_origin
from estimator_core._step import Discovery
from estimator_core.errors import VariableError, did_you_mean

_log = logging.getLogger("estimator_core")
_INIT_FN = "Scaffold(init_fn=...)"


def initial_overrides(
    warm_start: InitialValues | None,
    plugins: Plugins,
    values: Mapping[str, object],
    specs: Mapping[str, VariableSpec],
    discovery: Discovery,
    seed: int,
) -> dict[str, np.ndarray]:
    """Returns the values to replace in a fresh run, by path, and logs the origin of each.

    Sources use these plugins to read a URL or a path.
    """
    sources = [*([] if warm_start is None else [warm_start]), *discovery.requests]
    init_fn = None if discovery.scaffold is None else discovery.scaffold.init_fn
    with using_plugins(plugins):
        replaced = replaced_values(values, specs, seed=seed, sources=sources, init_fn=init_fn)
    if replaced:
        lines = (f"  {path}: {_described(one)}" for path, one in replaced.items())
        _log.info("Initial values from elsewhere:\n%s", "\n".join(lines))
    return {path: one.value for path, one in replaced.items()}


def replaced_values(
    values: Mapping[str, object],
    specs: Mapping[str, VariableSpec],
    *,
    seed: int,
    sources: Iterable[InitialValues] = (),
    init_fn: Callable[[dict[str, Any]], Mapping[str, Any]] | None = None,
) -> dict[str, InitialValue]:
    """Computes on the host which initial values are replaced. Later sources override earlier ones.

    This is only for a run without a checkpoint: a checkpoint overrides all of this.

    Args:
        values: the values of the initialisers, by path.
        specs: the variables, by path.
        seed: the seed of the run.
        sources: the sources of `warm_start_from` and of model_fn, in that order.
        init_fn: the function of the `Scaffold`; None without one.

    Returns:
        The new values, by path, with the shapes and dtypes of `specs`.

    Raises:
        VariableError: a value does not fit.
    """
    key = functools.partial(variable_key, np.array(seed_words(seed), np.uint32))
    replaced: dict[str, InitialValue] = {}
    for source in sources:
        refuse_misfit(source, InitialValues, describe(source, "initial values"), VariableError)
        with noting_origin(functools.partial("in {}".format, describe(source, "initial values"))):
            replaced |= _checked(type(source).__name__, source.initial_values(specs, key), specs)
    if init_fn is not None:
        given = init_fn({path: np.array(replaced[path].value if path in replaced else values[path]) for path in specs})
        if not isinstance(given, Mapping):
            raise VariableError(
                f"{_INIT_FN} returned {type(given).__name__}. It must return a dict of the values to replace, by path."
            )
        copies = {path: InitialValue(value=np.array(value), origin=_INIT_FN) for path, value in given.items()}
        replaced |= _checked(_INIT_FN, copies, specs)
    return replaced


def _checked(
    giver: str, given: Mapping[str, InitialValue], specs: Mapping[str, VariableSpec]
) -> dict[str, InitialValue]:
    from estimator_core._model.compatibility import check_value

    if not isinstance(given, Mapping) or not all(isinstance(one, InitialValue) for one in given.values()):
        raise VariableError(f"{giver} returned {given!r:.200}; it must return an InitialValue for each path.")
    checked: dict[str, InitialValue] = {}
    for path, one in given.items():
        if path not in specs:
            raise VariableError(
                f"{giver} returned a value for {path!r}, which is not a variable.{did_you_mean(path, specs)} "
                f"Variables: {', '.join(sorted(specs))}."
            )
        check_value(specs[path], one.value, "the value", f"that {giver} returned")
        value = np.asarray(one.value, specs[path].dtype)
        checked[path] = InitialValue(value=value, origin=one.origin, remark=one.remark)
    return checked


def _described(one: InitialValue) -> str:
    return f"{one.origin} ({one.remark})" if one.remark else one.origin
