"""An adapter to dm-haiku, as a third party would write it: functions with parameters and a state."""

import sys

import jax
import jax.numpy as jnp

from estimator_core.errors import ArgumentTypeError
from estimator_core.model import ModuleValues


class HaikuAdapter:
    """Binds `hk.transform_with_state(f)`.

    `f` receives the inputs and `is_training`, which is true only in mode TRAIN.
    """

    name, library = "haiku", "haiku"

    def handles(self, module):
        return isinstance(module, sys.modules["haiku"].TransformedWithState)

    def bind(self, binding):
        module = binding.module

        def init(key, *inputs):
            params, state = module.init(key, *inputs, is_training=True)
            return {**_flat("", params), **_flat("state/", state)}

        def apply(*inputs):
            zeros = [jnp.zeros(jnp.shape(one), jnp.result_type(one)) for one in inputs]
            forms = jax.eval_shape(init, jax.random.key(0), *zeros)
            shapes = [(jnp.shape(one), jnp.result_type(one)) for one in inputs]
            computed = ModuleValues(
                path=binding.path, compute=lambda key: init(key, *(jnp.zeros(*shape) for shape in shapes))
            )
            values = {
                name: binding.variable(
                    name, form.shape, form.dtype, computed.of(name), trainable=not name.startswith("state/")
                )
                for name, form in forms.items()
            }
            params = _tree(values, lambda name: not name.startswith("state/"))
            state = _tree(values, lambda name: name.startswith("state/"), "state/")
            training = binding.scope.mode == "train"
            output, changed = module.apply(params, state, binding.key("rng"), *inputs, is_training=training)
            if training:
                for name, value in _flat("state/", changed).items():
                    binding.write(name, value)
            return output

        return apply

    def write_back(self, module, values):
        raise ArgumentTypeError("Functions of Haiku hold no values to load into; build params from the names.")


def _flat(prefix, tree):
    return {
        f"{prefix}{module.replace('~', 'in')}/{name}": value
        for module, values in tree.items()
        for name, value in values.items()
    }


def _tree(values, chosen, prefix=""):
    tree = {}
    for path, value in values.items():
        if chosen(path):
            module, _, name = path.removeprefix(prefix).replace("/in/", "/~/").rpartition("/")
            tree.setdefault(module, {})[name] = value
    return tree
