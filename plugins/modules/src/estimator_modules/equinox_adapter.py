"""The adapter for Equinox modules: trees whose arrays are replaced by variables of the scope."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from estimator_core.errors import ArgumentTypeError, VariableError
from estimator_core.model import Binding, ModuleValues, is_traced


class EquinoxAdapter:
    """The adapter for Equinox. Inexact arrays are trainable unless `trainable=` excludes them. Others are state."""

    name = "equinox"
    library = "equinox"

    def handles(self, module: Any) -> bool:
        """Returns whether the object is an `equinox.Module`, or a pair of a module and its `equinox.nn.State`."""
        equinox = sys.modules["equinox"]
        if isinstance(module, tuple) and len(module) == 2:
            return isinstance(module[0], equinox.Module) and isinstance(module[1], equinox.nn.State)
        return isinstance(module, equinox.Module)

    def bind(self, binding: Binding) -> Any:
        """Returns the module with the values of the scope, in inference mode outside TRAIN.

        If the module has state, the result is an `EquinoxModule`.
        """
        import equinox as eqx

        stateful = isinstance(binding.module, tuple)
        module, state = binding.module if stateful else (binding.module, None)
        if not binding.made_in_trace and any(is_traced(leaf) for leaf in jax.tree_util.tree_leaves((module, state))):
            raise VariableError(
                f"The module {binding.path!r} was made inside model_fn, so its values belong to one trace. Give "
                "ec.module the class or a "
                "function of `key` that makes it, or make it outside model_fn."
            )
        module = self._bound(binding, module, "")
        if binding.scope.mode != "train":
            module = eqx.nn.inference_mode(module)
        if not stateful:
            return module
        return EquinoxModule(binding, module, self._bound(binding, state, "state/"))

    def write_back(self, module: Any, values: Mapping[str, Any]) -> None:
        """Refuses the call, because Equinox modules cannot be changed.

        Raises:
            ArgumentTypeError: always.
        """
        raise ArgumentTypeError(
            "Equinox modules cannot be changed in place. Make a new one with equinox.tree_at, from the "
            "estimator's variables of the same names."
        )

    def _bound(self, binding: Binding, tree: Any, prefix: str) -> Any:
        """Returns the tree with its arrays replaced by variables."""
        named, structure = _named_leaves(tree, prefix)
        make = binding.make

        def values(key: jax.Array) -> dict[str, Any]:
            assert make is not None
            made = make(key)
            parts = (made[1] if prefix else made[0]) if isinstance(made, tuple) else made
            return {name: leaf for name, leaf in _named_leaves(parts, prefix)[0] if _is_stored(leaf)}

        computed = ModuleValues(path=binding.path, compute=values) if binding.made_in_trace else None
        leaves = [
            binding.variable(
                name,
                leaf.shape,
                leaf.dtype,
                np.asarray(leaf) if computed is None else computed.of(name),
                trainable=not prefix and jnp.issubdtype(leaf.dtype, jnp.inexact),
            )
            if _is_stored(leaf)
            else leaf
            for name, leaf in named
        ]
        return jax.tree_util.tree_unflatten(structure, leaves)


class EquinoxModule:
    """An Equinox module with state, in model_fn.

    `outputs = network(inputs)` passes the state on. Under `jax.vmap`, pass it yourself, outside of the mapped
    function::

        mapped = jax.vmap(network.module, axis_name="batch", in_axes=(0, None), out_axes=(0, None))
        outputs, network.state = mapped(inputs, network.state)

    Attributes:
        module: the Equinox module.
        state: the state of the module. Its value when model_fn returns is the state of the next step.
    """

    def __init__(self, binding: Binding, module: Any, state: Any) -> None:
        self.module = module
        self.state = state
        self._binding = binding
        # Equinox refuses to read a used state, so its leaves are recorded here.
        self._before = dict(_named_leaves(state, "state/")[0])
        binding.scope.at_close(self._collect)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the output of the module. The state is the last positional argument, and the new state is kept.

        Raises:
            VariableError: it is called inside an inner trace, where the state could not be kept.
        """
        self._binding.scope.require_outermost(
            f"The module {self._binding.path!r} was called",
            "pass network.state to network.module and return the new state",
        )
        output, self.state = self.module(*args, self.state, **kwargs)
        return output

    def _collect(self) -> None:
        after = dict(_named_leaves(self.state, "state/")[0])
        for name, value in after.items():
            if _is_stored(value) and value is not self._before.get(name):
                self._binding.write(name, value)


def _named_leaves(tree: Any, prefix: str) -> tuple[list[tuple[str, Any]], Any]:
    leaves, structure = jax.tree_util.tree_flatten_with_path(tree)
    if prefix:  # the keys of a State are markers without names, in a fixed order
        return [(f"{prefix}{index}", leaf) for index, (_, leaf) in enumerate(leaves)], structure
    return [(jax.tree_util.keystr(path, simple=True, separator="/"), leaf) for path, leaf in leaves], structure


def _is_stored(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array | np.ndarray) and not jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
