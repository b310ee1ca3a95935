"""The adapter for Flax Linen modules. Variables are declared at each call, because Linen needs the inputs for that."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from typing import Any, cast

import jax
import jax.numpy as jnp

from estimator_core.errors import ArgumentTypeError, VariableError
from estimator_core.model import Binding, ModuleValues

_INNER = "inside a function that JAX traces by itself (scan, cond, vmap, grad, checkpoint, jit)"


class LinenAdapter:
    """The adapter for Flax Linen.

    The collection `params` holds trainable variables (`name/path`), and the other collections hold model state
    (`name/collection/path`).
    """

    name = "linen"
    library = "flax.linen"

    def handles(self, module: Any) -> bool:
        """Returns whether the object is a `linen.Module`."""
        return isinstance(module, sys.modules["flax.linen"].Module)

    def bind(self, binding: Binding) -> Any:
        """Returns a callable that represents the module.

        Raises:
            VariableError: the module is already bound to values.
        """
        if binding.module.scope is not None:
            raise VariableError(
                f"The Linen module {binding.path!r} is already bound to variables. Give ec.module the unbound module, "
                "and its values as a warm start."
            )
        return LinenModule(binding)

    def write_back(self, module: Any, values: Mapping[str, Any]) -> None:
        """Refuses the call, because Linen modules hold no values.

        Raises:
            ArgumentTypeError: always.
        """
        raise ArgumentTypeError(
            "Linen modules hold no values to load into. Build the tree for module.apply from the estimator's "
            "variables: the parts of their "
            'names below the module\'s are the keys of {"params": ...}.'
        )


class LinenModule:
    """A Linen module in model_fn. Call it with the inputs of its `__call__`.

    Each call uses the same variables. Keyword arguments `method` and `rngs` are passed to `linen.Module.apply`. Without
    `rngs`, each call has its own keys for every random stream.
    """

    def __init__(self, binding: Binding) -> None:
        self.module = binding.module
        self._binding = binding

    def __call__(self, *args: Any, method: Any = None, rngs: Any = None, **kwargs: Any) -> Any:
        """Returns the output of the module.

        Raises:
            VariableError: the module draws random numbers or changes its state inside an inner trace.
        """
        from flax import errors

        outermost = self._binding.scope.is_outermost
        variables = self._declare(args, method, kwargs)
        changing = [name for name in variables if name != "params"] if outermost else []
        if rngs is None:
            rngs = {"params": self._binding.key("rng")} if outermost else {}
        try:
            output, changed = self.module.apply(
                variables, *args, method=method, rngs=rngs, mutable=[*changing, "intermediates"], **kwargs
            )
        except errors.InvalidRngError as error:
            raise VariableError(
                f"The Linen module {self._binding.path!r} draws random numbers {_INNER}, where every iteration or "
                "example would get the same "
                "ones. Pass keys of your own: take one outside with ec.next_rng_key(), split it, and call "
                "module(..., rngs={'dropout': key})."
            ) from error
        except errors.ModifyScopeVariableError as error:
            raise VariableError(
                f"The Linen module {self._binding.path!r} changes its state {_INNER}. Call it outside, or use "
                "Linen's own transforms (nn.scan, "
                "nn.vmap, nn.remat) in the module."
            ) from error
        if outermost:
            self._keep(variables, changed)
        return output

    def _declare(self, args: Any, method: Any, kwargs: Any) -> dict[str, Any]:
        """Returns the variables of this call in the form of Linen. New ones are declared."""
        from flax import linen as nn
        from flax.traverse_util import unflatten_dict

        inputs, structure = jax.tree_util.tree_flatten((args, kwargs))
        # Each input has a function, so that no value of this trace is kept.
        stand_ins = [_stand_in(leaf) for leaf in inputs]

        def init(key: jax.Array) -> Any:
            # The inputs of the first call are replaced by zeros: initial values must not depend on a batch.
            init_args, init_kwargs = jax.tree_util.tree_unflatten(structure, [make() for make in stand_ins])
            found = self.module.init({"params": key}, *init_args, method=method, **init_kwargs)
            return {collection: tree for collection, tree in found.items() if collection != "intermediates"}

        def flat_values(key: jax.Array) -> dict[str, Any]:
            return {_name(path): value for path, value in _flat(nn.meta.unbox(init(key))).items()}

        boxed = jax.eval_shape(init, jax.random.key(0))
        partitions = _flat(nn.get_partition_spec(boxed))
        computed = ModuleValues(path=self._binding.path, compute=flat_values)
        values: dict[Any, Any] = {}
        for path, leaf in _flat(nn.meta.unbox(boxed)).items():
            name, partition = _name(path), partitions.get(path)
            values[path] = self._binding.variable(
                name,
                leaf.shape,
                leaf.dtype,
                computed.of(name),
                trainable=path[0] == "params",
                sharding=tuple(partition) if partition else None,
            )
        return unflatten_dict(values)

    def _keep(self, before: Mapping[str, Any], changed: Mapping[str, Any]) -> None:
        known = _flat(dict(before))
        for path, value in _flat(dict(changed)).items():
            if path[0] == "intermediates":
                for one in value if isinstance(value, tuple) else (value,):
                    if hasattr(one, "shape"):
                        self._binding.tensor("/".join(path[1:]), one)
            elif path not in known:
                raise VariableError(
                    f"The Linen module {self._binding.path!r} has made {'/'.join(path)!r} while it was called, "
                    "but not when it was "
                    "initialised. The state of a module must not change its form: declare the variable in every call."
                )
            elif value is not known[path]:
                self._binding.write(_name(path), value)


def _name(path: tuple[str, ...]) -> str:
    return "/".join(path[1:] if path[0] == "params" else path)


def _flat(tree: Any) -> dict[tuple[str, ...], Any]:
    from flax.traverse_util import flatten_dict

    return cast(dict[tuple[str, ...], Any], flatten_dict(tree))


def _stand_in(leaf: Any) -> Callable[[], Any]:
    """Returns a function that makes a stand-in for an input: zeros for an array, and any other value unchanged."""
    if not (isinstance(leaf, jax.Array) or hasattr(leaf, "__array__")):
        return lambda: leaf
    return functools.partial(jnp.zeros, jnp.shape(leaf), jnp.result_type(leaf))
