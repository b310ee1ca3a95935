"""The contract of what replaces first values of variables: a checkpoint of another model, a table of numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import jax
import numpy as np

from estimator_core._model.variables import VariableSpec


@dataclass(frozen=True, kw_only=True)
class InitialValue:
    """A first value that takes the place of another.

    Args:
        value: of the variable's shape and kind of number; its precision is converted.
        origin: where it comes from, as the log says it.
        remark: what was done to it on the way; may be empty.
    """

    value: np.ndarray
    origin: str
    remark: str = ""


@runtime_checkable
class InitialValues(Protocol):
    """Replaces first values by path, before the first step of a run without a checkpoint of its own.

    An Estimator takes one as `warm_start_from`; a function called by model_fn gives one to
    `estimator_core.model.request_initial_values`.

    Example:
        >>> class Ones:
        ...     def initial_values(self, specs, key):
        ...         return {
        ...             path: InitialValue(value=np.ones(spec.shape, spec.dtype), origin="ones")
        ...             for path, spec in specs.items()
        ...         }
        >>> isinstance(Ones(), InitialValues)
        True
    """

    def initial_values(
        self, specs: Mapping[str, VariableSpec], key: Callable[[str], jax.Array]
    ) -> Mapping[str, InitialValue]:
        """The values that replace others, by path; the variables left out keep theirs.

        Args:
            specs: every variable of the model, by path.
            key: gives the random key of a path, the same in every run of a seed.

        Raises:
            VariableError: what was asked for does not fit the variables.
        """
        ...


class ReadsCheckpoints(Protocol):
    """What the target of a component has that reads checkpoints of another framework, `Component(reads=...)`.

    With it `warm_start_from`, `init_from_checkpoint` and `load_variables` read such a path by themselves, and a
    model_dir that holds such a checkpoint and none of ours is refused.

    Attributes:
        title: the framework that writes them, as messages name it.
        conversion: the command that makes a checkpoint of ours of one, with `{path}` in its place.
    """

    title: str
    conversion: str

    def load(self, path: str, /) -> Mapping[str, np.ndarray]:
        """Its arrays, by name."""
        ...
