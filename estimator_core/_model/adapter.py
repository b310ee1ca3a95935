"""The contract of module adapters: how modules of a neural-network library get their variables from the scope.

An adapter is a plugin component of kind "adapter". Importing its file must not import its library. The core queries
every adapter, so an adapter whose library no model uses must cost nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

from estimator_core.errors import ArgumentTypeError

if TYPE_CHECKING:
    import jax
    import numpy as np

    from estimator_core._model.scope import Scope

#: Which of a module's parameters are trained: all or none, a regular expression of the whole name, or a function of
# the name.
Trainable: TypeAlias = bool | str | Callable[[str], bool] | None


@runtime_checkable
class ModuleAdapter(Protocol):
    """Connects modules of one library to the variable scope.

    Example:
        >>> class Affine:
        ...     def __init__(self, features):
        ...         self.features = features
        >>> class AffineAdapter:
        ...     name, library = "affine", "builtins"
        ...
        ...     def handles(self, module):
        ...         return isinstance(module, Affine)
        ...
        ...     def bind(self, binding):
        ...         def apply(x):
        ...             import jax
        ...
        ...             shape = (x.shape[-1], binding.module.features)
        ...             return x @ binding.variable("kernel", shape, x.dtype, jax.nn.initializers.lecun_normal())
        ...
        ...         return apply
        ...
        ...     def write_back(self, module, values):
        ...         raise NotImplementedError
        >>> isinstance(AffineAdapter(), ModuleAdapter)
        True
    """

    @property
    def name(self) -> str:
        """The name of the component."""
        ...

    @property
    def library(self) -> str:
        """The Python module that all modules of the library need. The adapter is queried only after it is imported."""
        ...

    def handles(self, module: Any) -> bool:
        """Returns whether an object is a module of this library."""
        ...

    def bind(self, binding: Binding) -> Any:
        """Returns the result of `ec.module`: the module of `binding`, or a replacement, with variables of the scope.

        It is called once per trace.
        """
        ...

    def write_back(self, module: Any, values: Mapping[str, np.ndarray]) -> None:
        """Loads values into an instance outside of model_fn, by name within the module.

        Raises:
            VariableError: names or shapes differ.
            ArgumentTypeError: instances of this library do not store values.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class Binding:
    """One module in one trace, in the form that an adapter receives.

    Args:
        scope: the variable scope.
        path: the path of the module.
        module: the instance, from the user or from the factory.
        make: a function that makes the module from a random key, if the user passed a factory; None for an instance. A
            factory with `rngs` or `key` has made `module` in this trace. A factory without arguments has made it on the
            host.
        made_in_trace: whether `module` was made in this trace.
        trainable: a function that returns whether a parameter is trained, from its name within the module.
    """

    scope: Scope
    path: str
    module: Any
    make: Callable[[jax.Array], Any] | None
    made_in_trace: bool
    trainable: Callable[[str], bool]

    def variable(
        self, name: str, shape: Any, dtype: Any, initial: Any, *, trainable: bool = True, sharding: Any = None
    ) -> Any:
        """Returns the value of a variable of the module, and declares the variable if it is new.

        Args:
            name: the name within the module.
            shape: the shape of the variable.
            dtype: the dtype of the variable.
            initial: the initial value: a function of `(key, shape, dtype)`, or a concrete array.
            trainable: False for model state. True: the user's `trainable=` decides.
            sharding: the partition annotation of the library; None without one.
        """
        from estimator_core._model.variables import make_spec

        path = f"{self.path}/{name}"
        known = self.scope.specs.get(path)
        # Values on a device are copied to the host only if they are new.
        first = (
            known.initializer
            if known is not None and not callable(initial) and known.shape == tuple(shape)
            else initial
        )
        return self.scope.read(make_spec(path, shape, first, dtype, trainable and self.trainable(name), sharding))

    def write(self, name: str, value: object) -> None:
        """Sets the next value of a variable of the model state, by its `name` within the module."""
        self.scope.write(f"{self.path}/{name}", value)

    def key(self, name: str) -> jax.Array:
        """Returns a random key of this step, by name within the module."""
        return self.scope.key(f"{self.path}/{name}")

    def tensor(self, name: str, value: object) -> None:
        """Names a value of the module for hooks. A name that is already used gets a number."""
        from estimator_core._model.scope import Output

        path, count = f"{self.path}/{name}", 0
        while path in self.scope.tensors:
            count += 1
            path = f"{self.path}/{name}_{count}"
        self.scope.add_output(path, Output("tensor", value))


def trainable_rule(trainable: Trainable) -> Callable[[str], bool]:
    """Returns the `trainable=` argument of `ec.module` as a function of the name.

    Example:
        >>> rule = trainable_rule(r"head/.*")
        >>> rule("head/kernel"), rule("body/kernel")
        (True, False)

    Raises:
        ArgumentTypeError: the argument is not a bool, a regular expression or a function.
    """
    if trainable is None or isinstance(trainable, bool):
        return lambda name: trainable is not False
    if isinstance(trainable, str):
        pattern = re.compile(trainable)
        return lambda name: pattern.fullmatch(name) is not None
    if callable(trainable):
        return lambda name: bool(trainable(name))
    raise ArgumentTypeError(
        f"ec.module(trainable=...) is {trainable!r}. Give True or False, a regular expression of whole names, or "
        "a function of the name."
    )
