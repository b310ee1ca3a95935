"""An adapter that brings modules of a library into the variable scope: here a library of one class."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from estimator_core.errors import VariableError
from estimator_core.model.adapter import Binding


class AcmeAdapterAdapter:
    """Dense layers of `acme_adapter.layers`. This file must not import that library: the core asks every adapter."""

    name, library = "acme_adapter", "acme_adapter.layers"

    def handles(self, module: Any) -> bool:
        """Whether it is a layer of the library."""
        return isinstance(module, sys.modules[self.library].Dense)

    def bind(self, binding: Binding) -> Callable[[Any], Any]:
        """A function that computes the layer with the variables of the scope."""
        layer = binding.module
        kernel = binding.variable("kernel", layer.kernel.shape, layer.kernel.dtype, layer.kernel)
        bias = binding.variable("bias", layer.bias.shape, layer.bias.dtype, layer.bias)
        return lambda x: x @ kernel + bias

    def write_back(self, module: Any, values: Mapping[str, np.ndarray]) -> None:
        """Gives an instance the trained values."""
        for name in ("kernel", "bias"):
            expected, given = getattr(module, name).shape, values[name].shape
            if given != expected:
                raise VariableError(f"{name} has shape {given}; this layer's is {expected}")
            setattr(module, name, np.array(values[name]))
