"""The adapter for Flax NNX modules. They are built in a trace, filled with the scope's values, and read at its end."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from estimator_core.errors import VariableError
from estimator_core.model import Binding, ModuleValues, check_names, is_traced

if TYPE_CHECKING:
    from flax import nnx


class NnxAdapter:
    """The adapter for Flax NNX. `Param`s are trainable, other `Variable`s are state, streams have a key per step."""

    name = "nnx"
    library = "flax.nnx"

    def handles(self, module: Any) -> bool:
        """Returns whether the object is an `nnx.Module`."""
        return isinstance(module, sys.modules["flax.nnx"].Module)

    def bind(self, binding: Binding) -> Any:
        """Returns the module of this trace, with the values of the scope.

        In EVAL and PREDICT its `eval()` has been called. In TRAIN, layers are random unless they define it otherwise.
        """
        from flax import nnx

        with nnx.use_eager_sharding(False):
            bound = _BoundModule(binding)
        if binding.scope.mode != "train":
            bound.module.eval()
        else:
            _train_where_nothing_is_said(bound.module)
        binding.scope.at_close(bound.collect)
        return bound.module

    def write_back(self, module: Any, values: Mapping[str, np.ndarray]) -> None:
        """Sets the parameters and the state of the instance. Random streams do not change.

        Raises:
            VariableError: names or shapes differ.
        """
        import jax.numpy as jnp

        stored = {name: variable for name, variable in _variables(module).items() if _is_stored(variable)}
        try:
            check_names(
                "Flax NNX module", {name: variable.get_value().shape for name, variable in stored.items()}, values
            )
        except VariableError as error:
            if not values.keys() < stored.keys():  # other names are unknown here: it is another module
                raise
            raise VariableError(
                f"{error}\nWhat a module shares with an earlier one is under the path of that one. Load each part by "
                'its own path: estimator.load_into(second.shared, "first/shared"), '
                'estimator.load_into(second.own, "second/own").'
            ) from None
        for name, variable in stored.items():
            variable.set_value(jnp.asarray(values[name], variable.get_value().dtype))


class _BoundModule:
    """One module in one trace of model_fn.

    Attributes:
        module: the module that model_fn uses.
        values: the Variables of the model state and their initial values in the trace, by name.
    """

    def __init__(self, binding: Binding) -> None:
        from flax import errors

        self.binding = binding
        # Variables that another module of this trace owns keep their path in it (tied weights).
        self.owners: dict[int, tuple[Any, str]] = binding.scope.notes.setdefault("nnx", {})
        self.values: dict[str, tuple[Any, Any]] = {}
        originals = _variables(binding.module)
        self._refuse_traced_instance(originals)
        if not binding.made_in_trace and not any(self._is_owned_here(one) for one in originals.values()):
            self.module = self._copy(originals)
            return
        try:
            self.module = binding.module
            self._fill(originals, originals)
        except errors.TraceContextError:
            # The factory uses a module made outside model_fn, which must not be changed.
            if any(self._is_owned_here(one) for one in originals.values()):
                raise VariableError(
                    f"The module {binding.path!r} holds variables of another module of this model_fn and variables "
                    "made outside model_fn. Pass the one made outside to ec.module too, and give its factory an "
                    "argument rngs."
                ) from None
            self.module = self._copy(originals)

    def collect(self) -> None:
        """Passes changed model state and sown values to the scope."""
        from flax import nnx

        for name, variable in _variables(self.module).items():
            if isinstance(variable, nnx.Intermediate):
                self._name_sown(name, variable.get_value())
            elif name in self.values:
                value = variable.get_value()
                if value is not self.values[name][1]:
                    self.binding.write(name, value)
            elif _is_stored(variable) and not isinstance(variable, nnx.Param) and id(variable) not in self.owners:
                raise VariableError(
                    f"The module {self.binding.path!r} has made {type(variable).__name__} {name!r} while it was "
                    "called. The state of a "
                    "module must not change its form: make the Variable in __init__, or sow the value as "
                    "nnx.Intermediate."
                )

    def _copy(self, originals: dict[str, Any]) -> Any:
        from flax import nnx

        graph, state = nnx.split(self.binding.module)
        module = nnx.merge(graph, state, copy=True)
        # Sown values of calls outside model_fn are removed.
        nnx.pop(module, lambda path, node: type(node) is nnx.Intermediate)
        self._fill(originals, _variables(module))
        return module

    def _fill(self, originals: dict[str, Any], variables: dict[str, Any]) -> None:
        """Sets `variables` (of this trace) to the values of the scope. `originals` hold the initial values."""
        from flax import nnx

        make, path = self.binding.make, self.binding.path
        computed = (
            ModuleValues(path=path, compute=lambda key: _values(make(key)), on_host=False) if make is not None else None
        )
        for name, variable in variables.items():
            original = originals[name]
            owner = self.owners.get(id(original))
            if owner is not None:
                self._share(name, original, variable, owner[1])
            elif isinstance(variable, nnx.RngKey):
                variable.set_value(_key_like(variable.get_value(), self.binding.key(name)))
            elif isinstance(variable, nnx.RngCount):
                variable.set_value(variable.get_value() * 0)
            elif _is_stored(variable):
                value = original.get_value()
                given = self.binding.variable(
                    name,
                    value.shape,
                    value.dtype,
                    value if computed is None or not is_traced(value) else computed.of(name),
                    trainable=isinstance(variable, nnx.Param),
                    sharding=_sharding(variable),
                )
                variable.set_raw_value(given)
                self.owners[id(original)] = (original, f"{path}/{name}")
                self.owners[id(variable)] = (variable, f"{path}/{name}")
                if not self._is_trainable(name):
                    self.values[name] = (variable, given)

    def _share(self, name: str, original: Any, variable: Any, path: str) -> None:
        """Shares a Variable of an earlier module: the same object, or its copy in another instance."""
        if variable is original:
            return
        spec = self.binding.scope.specs[path]
        if not spec.trainable:
            raise VariableError(
                f"The modules {self.binding.path!r} and {path!r} share {type(original).__name__} {name!r}, which "
                "changes while they are "
                "called. Modules made outside model_fn can share parameters only: put both into one module, or "
                "use factories."
            )
        variable.set_raw_value(self.binding.scope.read(spec))

    def _is_trainable(self, name: str) -> bool:
        return self.binding.scope.specs[f"{self.binding.path}/{name}"].trainable

    def _is_owned_here(self, variable: Any) -> bool:
        owner = self.owners.get(id(variable))
        return owner is not None and owner[0] is variable and _is_traced(variable)

    def _refuse_traced_instance(self, originals: dict[str, Any]) -> None:
        owned = any(self._is_owned_here(one) for one in originals.values())
        if self.binding.made_in_trace or self.binding.make is not None or owned:
            return
        if any(_is_traced(one) for one in originals.values()):
            kind = type(self.binding.module).__name__
            raise VariableError(
                f"The module {self.binding.path!r} was made inside model_fn, so its values belong to one trace. "
                "Give ec.module the class or "
                f"a factory, ec.module({kind}, ...) or ec.module(lambda rngs: {kind}(..., rngs=rngs), ...), or "
                "make it outside model_fn."
            )

    def _name_sown(self, name: str, value: Any) -> None:
        for one in value if isinstance(value, tuple) else (value,):
            if hasattr(one, "shape"):
                self.binding.tensor(name, one)


def _train_where_nothing_is_said(module: Any) -> None:
    """Makes layers random that do not define it, such as attention. A layer that defines it is not changed."""
    module.set_attributes(_says_neither_way, deterministic=False, raise_if_not_found=False)


def _says_neither_way(path: tuple[Any, ...], layer: Any) -> bool:
    """Filters layers for `set_attributes` of Flax: `deterministic` is None."""
    return vars(layer).get("deterministic", False) is None


def _key_like(held: Any, key: Any) -> Any:
    """Returns the key of a stream, or for stacked layers (`nnx.split_rngs`), one key for each layer."""
    import jax

    return jax.random.split(key, held.shape) if held.shape else key


def _variables(module: Any) -> dict[str, nnx.Variable[Any]]:
    """Returns the Variables of a module by name. Each occurs once, at its first path."""
    from flax import nnx

    return {"/".join(map(str, path)): node for path, node in nnx.iter_graph(module) if isinstance(node, nnx.Variable)}


def _values(module: Any) -> dict[str, Any]:
    return {name: variable.get_value() for name, variable in _variables(module).items() if _is_stored(variable)}


def _is_stored(variable: Any) -> bool:
    """Returns whether the scope keeps the Variable: an array that is neither a random stream nor a sown value."""
    from flax import nnx

    value = variable.get_value()
    return (
        not isinstance(variable, nnx.RngState | nnx.Intermediate)
        and hasattr(value, "shape")
        and hasattr(value, "dtype")
    )


def _is_traced(variable: Any) -> bool:
    return is_traced(variable.get_value())


def _sharding(variable: Any) -> tuple[Any, ...] | None:
    metadata = variable.get_metadata()
    names = metadata.get("out_sharding")
    if names is None:
        return None
    rules = dict(metadata.get("sharding_rules") or ())
    return tuple(rules.get(name, name) if isinstance(name, str) else name for name in names)
