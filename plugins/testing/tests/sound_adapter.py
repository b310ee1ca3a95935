"""A sound adapter to the library of one class."""

import sys

from estimator_core.errors import VariableError


class AffineAdapter:
    name, library = "affine", "plugins.testing.tests.affine_library"

    def handles(self, module):
        return isinstance(module, sys.modules[self.library].Affine)

    def parameters(self, binding):
        for name in ("kernel", "bias"):
            value = getattr(binding.module, name)
            yield binding.variable(name, value.shape, value.dtype, value)

    def bind(self, binding):
        kernel, bias = self.parameters(binding)
        calls = binding.variable("calls", (), "float32", _zero, trainable=False)

        def apply(x):
            if binding.scope.mode == "train":
                binding.write("calls", calls + 1)
            return x @ kernel + bias

        return apply

    def write_back(self, module, values):
        for name in ("kernel", "bias"):
            if values[name].shape != getattr(module, name).shape:
                raise VariableError(f"{name} has shape {values[name].shape}")
            setattr(module, name, values[name].copy())


def _zero(key, shape, dtype):
    import jax.numpy as jnp

    return jnp.zeros(shape, dtype)
