"""Plain functions as modules: their variables are those they ask for with `ec.get_variable`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping
from typing import Any

from estimator_core._model.adapter import Binding
from estimator_core.errors import ArgumentTypeError


class FunctionAdapter:
    """Runs a function in the variable scope of its name; called again, it uses the same variables."""

    name = "function"
    library = "builtins"

    def handles(self, module: object) -> bool:
        """Whether it is a function, not a class."""
        return callable(module) and not inspect.isclass(module)

    def bind(self, binding: Binding) -> Any:
        """The function, in its scope."""
        function, scope, path = binding.module, binding.scope, binding.path

        @functools.wraps(function)
        def in_scope(*args: object, **kwargs: object) -> Any:
            with scope.at(path):
                return function(*args, **kwargs)

        return in_scope

    def write_back(self, module: object, values: Mapping[str, object]) -> None:
        """Refused: a function holds no values.

        Raises:
            ArgumentTypeError: always.
        """
        raise ArgumentTypeError(
            "A function holds no values to load into. Read them with estimator.get_variable_value(name)."
        )
