"""A model with its values, as exports are made of it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from estimator_core.specs import EstimatorSpec


@dataclass(frozen=True, kw_only=True)
class ModelToExport:
    """What estimator-signatures gets of an Estimator.

    Attributes:
        owner: lives as long as the functions of the model are of use; can be referenced weakly.
        placement: the one device that signatures are traced for.
        on_device: enters that placement.
        variables: what is trained, by path; only shapes matter for signatures.
        model_state: all other variables, by path.
        step: the global step.
        serve: returns the model in a mode, `(variables, model_state, features, labels) -> EstimatorSpec`: pure, to be
            called under a trace, and the same at every step.
        values: makes a host array of a variable.
    """

    owner: object
    placement: Hashable
    on_device: Callable[[], AbstractContextManager[object]]
    variables: Mapping[str, Any]
    model_state: Mapping[str, Any]
    step: int
    serve: Callable[[str], Callable[..., EstimatorSpec]]
    values: Callable[[Any], Any]
