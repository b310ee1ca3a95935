"""The adapter for Keras 3 models on the JAX backend. They are built on the host, and called without their own state."""

from __future__ import annotations

import inspect
import random
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np

from estimator_core.errors import VariableError
from estimator_core.model import Binding, ModuleValues, check_names


class KerasAdapter:
    """The adapter for Keras 3. Trainable variables are variables; batch statistics and seed states are model state."""

    name = "keras"
    library = "keras"

    def handles(self, module: Any) -> bool:
        """Returns whether the object is a `keras.Layer` or `keras.Model`."""
        return isinstance(module, sys.modules["keras"].Layer)

    def bind(self, binding: Binding) -> Any:
        """Returns a callable that represents the model.

        Raises:
            VariableError: Keras runs on another backend than JAX.
        """
        import keras

        if keras.backend.backend() != "jax":
            raise VariableError(
                f"Keras runs on the backend {keras.backend.backend()!r}; the model {binding.path!r} needs 'jax'. "
                "Set the environment variable "
                "KERAS_BACKEND=jax before Keras is imported."
            )
        return KerasModule(binding)

    def write_back(self, module: Any, values: Mapping[str, np.ndarray]) -> None:
        """Assigns the values to the variables of the model.

        Raises:
            VariableError: names or shapes differ, or the model is not built.
        """
        if not module.built:
            raise VariableError(
                "The Keras model is not built, so it has no variables to load into. Call it once on inputs, or "
                "build it."
            )
        stored = _variables(module)
        check_names("Keras model", {name: tuple(variable.shape) for name, variable in stored.items()}, values)
        for name, variable in stored.items():
            variable.assign(values[name])


class KerasModule:
    """A Keras model in model_fn. Call it with the inputs of the model.

    The default of `training` is True in TRAIN and False in other modes. As in `fit`, a model whose `call` has no such
    argument does not receive it, and neither do its layers.

    Attributes:
        model: the Keras model. Its own variables are not used and never changed.
        losses: the losses that calls have added so far, by `add_loss` and regularisers, for the loss of model_fn.
    """

    def __init__(self, binding: Binding) -> None:
        self.model = binding.module
        self.losses: list[Any] = []
        self._binding = binding

    def __call__(self, *args: Any, training: bool | None = None, **kwargs: Any) -> Any:
        """Returns the output of the model."""
        if _takes_training(self.model):
            kwargs["training"] = self._binding.scope.mode == "train" if training is None else training
        given = _Call(args, kwargs)
        _build(self.model, given)
        values = self._values(given)
        names = {id(variable): name for name, variable in _variables(self.model).items()}
        other = [names[id(variable)] for variable in self.model.non_trainable_variables]
        output, changed, losses = self.model.stateless_call(
            [values[names[id(variable)]] for variable in self.model.trainable_variables],
            [values[name] for name in other],
            *args,
            return_losses=True,
            **kwargs,
        )
        for name, new in zip(other, changed, strict=True):
            if new is not values[name] and not self._binding.scope.specs[f"{self._binding.path}/{name}"].trainable:
                self._binding.write(name, new)
        self.losses += losses
        return output

    def _values(self, given: _Call) -> dict[str, Any]:
        """Returns the values of the scope by name. New variables are declared."""
        make = self._binding.make
        computed = None
        if make is not None:
            computed = ModuleValues(
                path=self._binding.path, compute=lambda key: self._first_values(make, key, given), on_host=True
            )
        return {
            name: self._binding.variable(
                name,
                tuple(variable.shape),
                str(variable.dtype),
                variable.value if computed is None else computed.of(name),
                trainable=variable.trainable,
            )
            for name, variable in _variables(self.model).items()
        }

    def _first_values(self, make: Callable[[jax.Array], Any], key: jax.Array, given: _Call) -> dict[str, Any]:
        # Keras draws the seeds of its initialisers from Python's random generator.
        outside = random.getstate()
        random.seed(int.from_bytes(np.asarray(jax.random.key_data(key)).tobytes(), "little"))
        try:
            model = make(key)
            _build(model, given)
        finally:
            random.setstate(outside)
        return {name: np.asarray(variable.value) for name, variable in _variables(model).items()}


class _Call(NamedTuple):
    """The arguments of a call of a model."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]


def _takes_training(model: Any) -> bool:
    parameters = inspect.signature(model.call).parameters.values()
    return any(one.name == "training" or one.kind is one.VAR_KEYWORD for one in parameters)


def _build(model: Any, given: _Call) -> None:
    """Creates the variables of a model that has none yet."""
    if model.built:
        return
    import keras

    with jax.ensure_compile_time_eval():
        if type(model).build is keras.Layer.build:  # only a call shows its layers
            args, kwargs = jax.tree.map(_symbol, (given.args, dict(given.kwargs)))
            _ = model(*args, **kwargs)
        else:
            model.build(*jax.tree.map(lambda leaf: (None, *leaf.shape[1:]) if leaf.ndim else (), given.args))


def _symbol(leaf: Any) -> Any:
    """Returns an array as a symbol with its shape and dtype. Other values are unchanged."""
    import keras

    return keras.KerasTensor(leaf.shape, leaf.dtype.name) if hasattr(leaf, "shape") else leaf


def _variables(model: Any) -> dict[str, Any]:
    """Returns the variables of a model by names that do not depend on the number of models made before.

    Keras numbers layers without an explicit name across the whole process: `dense_7`, `dense_8` become `dense`,
    `dense_1`.
    """
    layers = model._flatten_layers()  # noqa: SLF001 - Keras has no public name for layers within layers
    classes = {layer.name: type(layer).__name__ for layer in layers}
    numbers: dict[tuple[str, str], dict[str, int]] = {}
    named: dict[str, Any] = {}
    for variable in model.variables:
        parts: list[str] = []
        for part in variable.path.removeprefix(f"{model.name}/").split("/"):
            stem = re.sub(r"_\d+$", "", part)
            if stem in (_snake(classes.get(part, "")), "seed_generator"):
                seen = numbers.setdefault(("/".join(parts), stem), {})
                number = seen.setdefault(part, len(seen))
                parts.append(f"{stem}_{number}" if number else stem)
            else:
                parts.append(part)
        name = "/".join(parts)
        if name in named:
            raise VariableError(
                f"Two variables of the Keras model {model.name!r} are called {name!r}. Give its layers different names."
            )
        named[name] = variable
    return named


def _snake(name: str) -> str:
    """Returns the name that Keras derives from the class of a layer."""
    name = re.sub(r"\W+", "", name)
    name = re.sub("(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub("([a-z])([A-Z])", r"\1_\2", name).lower()
