"""The contract of sources that replace first values of variables: a checkpoint of another model, a table of numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import jax
import numpy as np

from estimator_core._model.variables import VariableSpec


@dataclass(frozen=True, kw_only=True)
class InitialValue:
    """A first value that replaces another.

    Args:
        value: an array of the variable's shape and kind of number; its precision is converted.
        origin: where it comes from, in the words of the log.
        remark: how it was changed; may be empty.
    """

    value: np.ndarray
    origin: str
    remark: str = ""


@runtime_checkable
class InitialValues(Protocol):
    """Replaces first values by path, before the first step of a run without a checkpoint of its own.

    An Estimator takes one as `warm_start_from`. A function that model_fn calls passes one to
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
        """The values that replace others, by path. Variables that are left out keep theirs.

        Args:
            specs: every variable of the model, by path.
            key: returns the random key of a path, the same in every run with the same seed.

        Raises:
            VariableError: the requested values do not fit the variables.
        """
        ...


class ReadsCheckpoints(Protocol):
    """The members of a component that reads checkpoints of another framework, `Component(reads=...)`.

    With it `warm_start_from`, `init_from_checkpoint` and `load_variables` read such a path by themselves, and a
    model_dir that holds such a checkpoint and none of ours is refused.

    Attributes:
        title: the framework that writes them, as messages name it.
        conversion: the command that converts one to a checkpoint of ours, with `{path}` in its place.
    """

    title: str
    conversion: str

    def load(self, path: str, /) -> Mapping[str, np.ndarray]:
        """Its arrays, by name."""
        ...
