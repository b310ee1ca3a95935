"""Whether what was written gives what the estimator gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from estimator_core.errors import ExportError
from estimator_core.export import ExportRequest, Feature, LoadedExport

_BATCH = 3
_TOLERANCE = 1e-5
_NARROW_TOLERANCE = {"bfloat16": 2e-2, "float16": 5e-3}


def verify(request: ExportRequest, loaded: LoadedExport) -> None:
    """Runs every signature of a loaded export on random inputs, beside the function it was made from.

    Raises:
        ExportError: an output differs by more than 1e-5 of its largest entry (2e-2 for bfloat16, 5e-3 for float16);
            gives
            the figures.
    """
    generator = np.random.default_rng(0)
    variables = {key: jnp.asarray(value) for key, value in request.variables.items()}
    checked: set[Callable[..., Any]] = set()
    for name, signature in request.signatures.items():
        if signature.function in checked:
            continue
        checked.add(signature.function)
        inputs = {key: _sample(feature, generator) for key, feature in signature.inputs.items()}
        expected = jax.device_get(jax.jit(signature.function)(variables, inputs))
        found = loaded.signatures[name](**inputs)
        for key, value in expected.items():
            _compare(name, key, np.asarray(value), np.asarray(found[key]))


def _compare(signature: str, output: str, expected: np.ndarray, found: np.ndarray) -> None:
    where = f"The export does not reproduce the estimator: signature {signature!r}, output {output!r}"
    if expected.shape != found.shape:
        raise ExportError(f"{where} has shape {found.shape} instead of {expected.shape}.")
    relative = _NARROW_TOLERANCE.get(str(expected.dtype), _TOLERANCE)
    wide = expected.astype(np.float64), found.astype(np.float64)
    largest = float(np.max(np.abs(wide[0]), initial=0.0, where=np.isfinite(wide[0])))
    same = np.isclose(*wide, rtol=0, atol=relative * max(1.0, largest), equal_nan=True)
    if not same.all():
        place = tuple(int(index) for index in np.argwhere(~same)[0])
        raise ExportError(
            f"{where} at {list(place)} is {found[place]} instead of {expected[place]} "
            f"({int((~same).sum())} of {same.size} values differ by more than {relative})."
        )


def _sample(feature: Feature, generator: np.random.Generator) -> Any:
    shape = tuple(_BATCH if size is None else size for size in feature.shape)
    dtype = jnp.dtype(feature.dtype)
    if jnp.issubdtype(dtype, jnp.floating):
        return generator.normal(size=shape).astype(dtype)
    return generator.integers(0, 2, size=shape).astype(dtype)
