"""A model with its values, as the source of exports."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from estimator_core.specs import EstimatorSpec


@dataclass(frozen=True, kw_only=True)
class ModelToExport:
    """The parts of an Estimator that estimator-signatures receives.

    Attributes:
        owner: an object that lives as long as the functions of the model are used. It can be referenced weakly.
        placement: the device for which signatures are traced.
        on_device: a function that returns a context with that placement.
        variables: the trainable variables, by path. Signatures use only their shapes.
        model_state: all other variables, by path.
        step: the global step.
        serve: a function that returns the model in a mode, `(variables, model_state, features, labels) ->
            EstimatorSpec`. It is pure, may be traced, and is the same at every step.
        values: a function that copies a variable to a host array.
    """

    owner: object
    placement: Hashable
    on_device: Callable[[], AbstractContextManager[object]]
    variables: Mapping[str, Any]
    model_state: Mapping[str, Any]
    step: int
    serve: Callable[[str], Callable[..., EstimatorSpec]]
    values: Callable[[Any], Any]
