"""Initial values from elsewhere: warm start, init_from_checkpoint, Scaffold; in that order, each wins over the one
before.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import numpy as np

from estimator_core._checkpoint import load_variables
from estimator_core._loop.starting import Overrides
from estimator_core._model.initial_values import replaced_values
from estimator_core._model.variables import VariableSpec
from estimator_core._model.warm_start import WarmStartSettings
from estimator_core._step import Discovery

_log = logging.getLogger("estimator_core")


def initial_overrides(warm_start: WarmStartSettings | None) -> Overrides:
    """The function that gives the values to replace in a fresh run, and logs where each came from."""

    def overrides(
        values: Mapping[str, Any], specs: Mapping[str, VariableSpec], discovery: Discovery, seed: int
    ) -> Mapping[str, Any]:
        init_fn = None if discovery.scaffold is None else discovery.scaffold.init_fn
        if warm_start is None and not discovery.requests and init_fn is None:
            return {}
        replaced, report = replaced_values(
            values,
            specs,
            reader=read_values,
            seed=seed,
            settings=warm_start,
            requests=discovery.requests,
            init_fn=init_fn,
        )
        _log.info("Initial values from elsewhere:\n%s", report)
        return replaced

    return overrides


def read_values(path: str) -> Mapping[str, np.ndarray]:
    """All variables of a checkpoint, trainable or not, by path."""
    return load_variables(path)
