"""Initial values that model_fn requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from estimator_core._model.initial_values import InitialValues
from estimator_core._model.scope import active_scope
from estimator_core._model.variables import VariableSpec


@dataclass(frozen=True, kw_only=True)
class Declared:
    """The variables of a model at one point of model_fn.

    Attributes:
        variables: the variables that model_fn has requested so far, by path and in order.
        fresh: whether initial values will be computed for them. If not, because a checkpoint or a compiled step has the
            values, sources may no longer exist and must not be read.
    """

    variables: Mapping[str, VariableSpec]
    fresh: bool


def declared_variables(called: str = "ec.model.declared_variables") -> Declared:
    """Returns the variables that model_fn has requested so far.

    Args:
        called: the name of the function that needs them, for errors.

    Raises:
        ModelFnError: called outside model_fn.

    Example:
        >>> def model_fn(features, labels, mode):
        ...     kernel = get_variable("kernel", (4, 2))
        ...     assert list(declared_variables().variables) == ["kernel"]
    """
    scope = active_scope(called)
    return Declared(variables=MappingProxyType(dict(scope.met)), fresh=scope.fresh)


def request_initial_values(source: InitialValues) -> None:
    """Requests that initial values are replaced once, before the first step of a run without its own checkpoint.

    A later request overrides earlier ones. All of them override `warm_start_from`, and `Scaffold(init_fn=...)`
    overrides them.

    Args:
        source: the source of the values. It is called after model_fn has returned, with all its variables.

    Raises:
        ModelFnError: called outside model_fn.

    Example:
        >>> def model_fn(features, labels, mode):
        ...     kernel = get_variable("kernel", (4, 2))
        ...     request_initial_values(FromTable("kernels.npz"))
    """
    active_scope("ec.model.request_initial_values").requests.append(source)
