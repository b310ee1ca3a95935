"""Whether what was written gives what the estimator gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from estimator_core._export.contract import ExportCheck, ExportRequest, LoadedExport, LoadedSignature
from estimator_core._export.features import Feature
from estimator_core.errors import ExportError

_BATCH = 3


def verify(request: ExportRequest, loaded: LoadedExport, check: ExportCheck) -> None:
    """Runs every signature of a loaded export on random inputs, beside the function it was made from.

    Args:
        request: what was written.
        loaded: what was read back.
        check: compares each output.

    Raises:
        ExportError: a signature or an output is missing or cannot be computed, or `check` finds a difference; says
            which.
    """
    generator = np.random.default_rng(0)
    variables = {key: jnp.asarray(value) for key, value in request.variables.items()}
    checked: set[Callable[..., Any]] = set()
    for name, signature in request.signatures.items():
        where = f"signature {name!r}"
        if name not in loaded.signatures:
            raise ExportError(f"{_FAILS}: {where} is missing; there are {sorted(loaded.signatures)}.")
        if signature.function in checked:
            continue
        checked.add(signature.function)
        inputs = {key: _sample(feature, generator) for key, feature in signature.inputs.items()}
        expected: Mapping[str, Any] = jax.device_get(jax.jit(signature.function)(variables, inputs))
        found = _outputs(loaded.signatures[name], inputs, where)
        for key, value in expected.items():
            if key not in found:
                raise ExportError(f"{_FAILS}: {where}, output {key!r} is missing; there are {sorted(found)}.")
            difference = check.difference(np.asarray(value), np.asarray(found[key]))
            if difference is not None:
                raise ExportError(f"{_FAILS}: {where}, output {key!r} {difference}")


def _outputs(signature: LoadedSignature, inputs: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    try:
        return signature(**inputs)
    except Exception as error:
        raise ExportError(f"{_FAILS}: {where} cannot be called: {type(error).__name__}: {error}") from error


def _sample(feature: Feature, generator: np.random.Generator) -> Any:
    shape = tuple(_BATCH if size is None else size for size in feature.shape)
    dtype = jnp.dtype(feature.dtype)
    if jnp.issubdtype(dtype, jnp.floating):
        return generator.normal(size=shape).astype(dtype)
    return generator.integers(0, 2, size=shape).astype(dtype)


_FAILS = "The export does not reproduce the estimator"
