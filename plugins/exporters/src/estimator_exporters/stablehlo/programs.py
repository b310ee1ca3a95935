"""Serializes functions as programs for every platform, and reads them back."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import jax
import jax.numpy as jnp
from jax import export as jax_export

from estimator_core.errors import ExportError
from estimator_core.export import Feature, SignatureSpec
from estimator_exporters.bundle.callbacks import calling_back, refuse_callbacks

PLATFORMS = ("cpu", "cuda", "tpu")
_LINE = "\n"  # the later lines of an error of jax describe workarounds inside jax
_SIZES = (1, 2, 4, 8, 16, 32, 64)
_CALL = re.compile(r"custom_call @\"?([\w.$]+)")
_CALLS_BACK = re.compile(r"callback|python|host_execute", re.IGNORECASE)

#: The programs by function. The next export of the same receiver by an Estimator rewrites only its weights.
_WRITTEN: WeakKeyDictionary[Callable[..., Any], dict[Any, dict[int | None, bytes]]] = WeakKeyDictionary()


def programs_of(
    signature: SignatureSpec, variables: Mapping[str, Any], fixed_sizes: tuple[int, ...] | None
) -> dict[int | None, bytes]:
    """Returns the serialized programs of a signature: one for any batch size (key None), or one for each fixed size.

    Raises:
        ExportError: the signature cannot be lowered. The message names the place in the user's code.
    """
    shapes = {name: jax.ShapeDtypeStruct(value.shape, value.dtype) for name, value in variables.items()}
    key = (tuple(shapes.items()), tuple(signature.inputs.items()), fixed_sizes)
    known = _WRITTEN.setdefault(signature.function, {})
    if key not in known:
        known[key] = _lowered(signature, shapes, fixed_sizes)
    return known[key]


def _lowered(
    signature: SignatureSpec, variables: Mapping[str, jax.ShapeDtypeStruct], fixed_sizes: tuple[int, ...] | None
) -> dict[int | None, bytes]:
    if all(None not in feature.shape for feature in signature.inputs.values()):
        return {None: _lower(signature, variables, None)}
    if fixed_sizes is None:
        scope = jax_export.SymbolicScope(["b >= 1"])
        (batch,) = jax_export.symbolic_shape("b", scope=scope)
        try:
            return {None: _lower(signature, variables, batch)}
        except ExportError as error:
            symbolic = error
        if not isinstance(symbolic.__cause__, Exception):
            raise symbolic
        try:
            return {size: _lower(signature, variables, size) for size in _SIZES}
        except ExportError:
            raise symbolic from None
    return {size: _lower(signature, variables, size) for size in fixed_sizes}


def _lower(signature: SignatureSpec, variables: Mapping[str, jax.ShapeDtypeStruct], batch: Any) -> bytes:
    where = f"Signature {signature.name!r}"
    inputs = {name: _abstract(feature, batch) for name, feature in signature.inputs.items()}
    try:
        exported = jax_export.export(jax.jit(signature.function), platforms=PLATFORMS)(dict(variables), inputs)
        program = bytes(exported.serialize())
    except Exception as error:
        refuse_callbacks(signature.function, (dict(variables), inputs), where)
        size = "any batch size" if not isinstance(batch, int) else f"batch size {batch}"
        raise ExportError(f"{where} cannot be exported for {size}: {str(error).partition(_LINE)[0]}") from error
    _refuse_callbacks(exported.mlir_module(), where)
    return program


def _abstract(feature: Feature, batch: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(
        tuple(batch if size is None else size for size in feature.shape), jnp.dtype(feature.dtype)
    )


def read_program(path: Path, written_with: str) -> tuple[Any, dict[str, str]]:
    """Returns the program of a file as a jitted function of variables and inputs, and the dtypes of its inputs by name.

    Raises:
        ExportError: this jax cannot read the program, or the program would call into the Python process.
    """
    try:
        exported = jax_export.deserialize(bytearray(path.read_bytes()))
        known, convention = jax_export.maximum_supported_calling_convention_version, exported.calling_convention_version
        if convention > known:  # jax itself would use the convention that it knows
            raise ValueError(f"calling convention {convention}, but {known} is the newest that is known")
        module = exported.mlir_module()
        (_, inputs), _ = jax.tree.unflatten(exported.in_tree, exported.in_avals)
    except Exception as error:
        raise ExportError(
            f"{path} was written with jax {written_with} and cannot be read by jax {jax.__version__}: {error!r}. "
            "Use that jax or a newer one."
        ) from error
    _refuse_callbacks(module, str(path))
    return jax.jit(exported.call), {name: str(aval.dtype) for name, aval in inputs.items()}


def _refuse_callbacks(module: str, where: str) -> None:
    """Refuses a program with callbacks. A callback is a pointer, which is invalid or harmful in another process."""
    found = sorted({name for name in _CALL.findall(module) if _CALLS_BACK.search(name)})
    if found:
        raise ExportError(calling_back(where, found))
