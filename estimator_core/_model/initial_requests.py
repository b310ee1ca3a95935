"""First values that are requested inside model_fn."""

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
        variables: those that model_fn has requested so far, by path and in that order.
        fresh: whether first values will be computed for them. Where they will not, because a checkpoint has the values
            or a compiled step has them, sources need no longer exist: read nothing.
    """

    variables: Mapping[str, VariableSpec]
    fresh: bool


def declared_variables(called: str = "ec.model.declared_variables") -> Declared:
    """The variables that model_fn has asked for so far.

    Args:
        called: how the error calls the function of yours that needs them.

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
    """Has first values replaced, once, before the first step of a run without a checkpoint of its own.

    A source asked for later wins; all of them win over `warm_start_from`, and `Scaffold(init_fn=...)` over them.

    Args:
        source: asked for the values after model_fn has returned, with all variables there are by then.

    Raises:
        ModelFnError: called outside model_fn.

    Example:
        >>> def model_fn(features, labels, mode):
        ...     kernel = get_variable("kernel", (4, 2))
        ...     request_initial_values(FromTable("kernels.npz"))
    """
    active_scope("ec.model.request_initial_values").requests.append(source)
