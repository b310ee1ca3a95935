"""The contract of sources that replace initial values of variables, such as a checkpoint of another model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import jax
import numpy as np

from estimator_core._model.variables import VariableSpec


@dataclass(frozen=True, kw_only=True)
class InitialValue:
    """A new initial value.

    Args:
        value: an array with the shape and kind of number of the variable. Its precision is converted.
        origin: its origin, as text for the log.
        remark: a description of the change to the value, as text. It may be empty.
    """

    value: np.ndarray
    origin: str
    remark: str = ""


@runtime_checkable
class InitialValues(Protocol):
    """Replaces initial values by path, before the first step of a run without its own checkpoint.

    Pass it to an Estimator as `warm_start_from`. A function that model_fn calls can pass it to
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
        """Returns the new values, by path. Variables without a new value keep theirs.

        Args:
            specs: every variable of the model, by path.
            key: a function that returns the random key of a path, which is the same in every run with the same seed.

        Raises:
            VariableError: the requested values do not fit the variables.
        """
        ...


class ReadsCheckpoints(Protocol):
    """The members of a component that reads checkpoints of another framework (`Component(reads=...)`).

    `warm_start_from`, `init_from_checkpoint` and `load_variables` then read such a path. A model_dir with only such a
    checkpoint is refused.

    Attributes:
        title: the name of the framework in messages.
        conversion: the command that converts such a checkpoint to one of this framework, with `{path}` as placeholder.
    """

    title: str
    conversion: str

    def load(self, path: str, /) -> Mapping[str, np.ndarray]:
        """Returns the arrays of a checkpoint, by name."""
        ...
