"""Compiled functions in the form that the oldest supported TensorFlow reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import jax
import jax.numpy as jnp
from jax import export as jax_export

from estimator_core.errors import ExportError
from estimator_core.export import Feature, SignatureSpec
from estimator_exporters.bundle.callbacks import calling_back, refuse_callbacks
from estimator_exporters.saved_model.old_readers import READERS, for_old_readers, foreign_calls

#: The calling convention that TensorFlow 2.15 supports.
CONVENTION = 8
PLATFORMS = ("cpu", "cuda", "tpu")


@dataclass(frozen=True, kw_only=True)
class Program:
    """A function of flat variables and inputs.

    Attributes:
        module: the StableHLO module, as bytes.
        kept: the indices of the used arguments among all variables and inputs, sorted by name as in jax.
        taken: the dtypes of all arguments, used or not.
        given: the shape and dtype of each output.
        names: the names of the outputs.
        platforms: the platforms on which it runs.
    """

    module: bytes
    kept: tuple[int, ...]
    taken: tuple[str, ...]
    given: tuple[Feature, ...]
    names: tuple[str, ...]
    platforms: tuple[str, ...]


#: By function, so that the next export of the same receiver by an Estimator rewrites only its weights.
_KNOWN: WeakKeyDictionary[Callable[..., Any], dict[Any, Program]] = WeakKeyDictionary()


def program_of(signature: SignatureSpec, variables: Mapping[str, Any]) -> Program:
    """Returns the program of a signature, for any batch size.

    Raises:
        ExportError: the signature cannot be lowered, or the oldest supported reader lacks one of its operations.
    """
    shapes = {name: jax.ShapeDtypeStruct(value.shape, value.dtype) for name, value in variables.items()}
    key = (tuple(shapes.items()), tuple(signature.inputs.items()))
    known = _KNOWN.setdefault(signature.function, {})
    if key not in known:
        known[key] = _lowered(signature, shapes)
    return known[key]


def _lowered(signature: SignatureSpec, variables: Mapping[str, jax.ShapeDtypeStruct]) -> Program:
    where = f"Signature {signature.name!r}"
    (batch,) = jax_export.symbolic_shape("b", constraints=["b >= 1"])
    inputs = {name: _abstract(feature, batch) for name, feature in signature.inputs.items()}

    def lowered(platforms: tuple[str, ...]) -> Any:
        return jax_export.export(jax.jit(signature.function), platforms=platforms)(dict(variables), inputs)

    try:
        exported = lowered(PLATFORMS)
        platforms = _readable_on(exported, lowered, where)
        exported = exported if platforms == PLATFORMS else lowered(platforms)
    except ExportError:
        raise
    except Exception as error:
        refuse_callbacks(signature.function, (dict(variables), inputs), where)
        said = str(error).partition("\n")[0]
        raise ExportError(f"{where} cannot be exported for any batch size: {said}") from error
    if exported.ordered_effects or exported.unordered_effects:
        raise ExportError(
            calling_back(where, [str(one) for one in (*exported.ordered_effects, *exported.unordered_effects)])
        )
    names = sorted(signature.outputs)
    return Program(
        module=for_old_readers(exported.mlir_module_serialized, where),
        kept=tuple(exported.module_kept_var_idx),
        taken=tuple(str(aval.dtype) for aval in exported.in_avals),
        given=tuple(_feature(aval) for aval in exported.out_avals),
        names=tuple(names),
        platforms=platforms,
    )


def _readable_on(exported: Any, lowered: Callable[[tuple[str, ...]], Any], where: str) -> tuple[str, ...]:
    """Returns the platforms on which TensorFlow has all functions that a program calls.

    Raises:
        ExportError: TensorFlow lacks one of these functions on a CPU. The message names it.
    """
    if not foreign_calls(exported.mlir_module_serialized):
        return PLATFORMS
    calls = {one: foreign_calls(lowered((one,)).mlir_module_serialized) for one in PLATFORMS}
    if calls["cpu"]:
        raise ExportError(
            f"{where} calls {', '.join(calls['cpu'])}, which is a part of jax and not of TensorFlow {READERS[0]}. "
            "Compute without, or use the format 'stablehlo'."
        )
    return tuple(one for one, foreign in calls.items() if not foreign)


def _abstract(feature: Feature, batch: Any) -> jax.ShapeDtypeStruct:
    shape = tuple(batch if size is None else size for size in feature.shape)
    return jax.ShapeDtypeStruct(shape, jnp.dtype(feature.dtype))


def _feature(aval: Any) -> Feature:
    return Feature(tuple(size if isinstance(size, int) else None for size in aval.shape), str(aval.dtype))
