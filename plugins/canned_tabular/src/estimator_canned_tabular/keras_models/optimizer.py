"""A Keras optimizer as a train_op."""

from __future__ import annotations

from typing import Any

import numpy as np

import estimator_core as ec
from estimator_canned_tabular.keras_models.warnings import reading_keras


class KerasTrainOp:
    """The steps of a copy of the optimizer of a compiled model. Slots and schedule continue from their current values.

    Args:
        model: the compiled model.
    """

    def __init__(self, model: Any) -> None:
        self._trained = [variable for variable in model.variables if variable.trainable]
        given = model.optimizer
        with reading_keras():
            self._optimizer = type(given).from_config(given.get_config())
        self._optimizer.build(model.trainable_variables)
        self._order = [
            next(place for place, one in enumerate(self._trained) if one is variable)
            for variable in model.trainable_variables
        ]
        if given.built:
            for own, old in zip(self._optimizer.variables, given.variables, strict=True):
                own.assign(old.value)
        self._first = [np.asarray(variable.value) for variable in self._optimizer.variables]

    def train_op(self, names: list[str]) -> Any:
        """Returns the train_op for the variables of these names, which are in the order of the model."""
        ordered = [names[place] for place in self._order]

        def update(variables: dict[str, Any], state: Any, grad_fn: Any) -> tuple[dict[str, Any], Any]:
            _, gradients = grad_fn(variables)
            moved, after = self._optimizer.stateless_apply(
                state, [gradients[name] for name in ordered], [variables[name] for name in ordered]
            )
            return {**variables, **dict(zip(ordered, moved, strict=True))}, list(after)

        return ec.custom_train_op(update, lambda variables: list(self._first))
