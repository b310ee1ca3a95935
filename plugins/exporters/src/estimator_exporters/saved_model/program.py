"""Compiled functions in the form that the oldest promised TensorFlow reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import jax
import jax.numpy as jnp
from jax import export as jax_export
from jax.extend.mlir import ir, passmanager
from jax.extend.mlir.dialects import func, stablehlo

from estimator_core.errors import ExportError
from estimator_core.export import Feature, SignatureSpec

#: The TensorFlow that is promised to read the exports: the oldest, and the newest they are tried with.
READERS = ("2.15", "2.21")
#: What TensorFlow 2.15 knows of StableHLO, and of the convention by which a program is called.
STABLEHLO, CONVENTION = "0.14.0", 8
PLATFORMS = ("cpu", "cuda", "tpu")


@dataclass(frozen=True, kw_only=True)
class Program:
    """A function of variables and inputs, flat.

    Attributes:
        module: StableHLO, as bytes.
        kept: places of the arguments it takes among all variables and inputs, sorted by name as jax does.
        taken: dtypes of all arguments, kept or not.
        given: shape and dtype of each output.
        names: of the outputs.
    """

    module: bytes
    kept: tuple[int, ...]
    taken: tuple[str, ...]
    given: tuple[Feature, ...]
    names: tuple[str, ...]


#: By function: an estimator's next export of the same receiver rewrites only its weights.
_KNOWN: WeakKeyDictionary[Callable[..., Any], dict[Any, Program]] = WeakKeyDictionary()


def program_of(signature: SignatureSpec, variables: Mapping[str, Any]) -> Program:
    """The program of a signature, for any batch size.

    Raises:
        ExportError: it cannot be lowered, or the oldest promised reader does not know an operation of it.
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
    try:
        exported = jax_export.export(jax.jit(signature.function), platforms=PLATFORMS)(dict(variables), inputs)
    except Exception as error:
        raise ExportError(f"{where} cannot be exported for any batch size: {error}") from error
    if exported.ordered_effects or exported.unordered_effects:
        raise ExportError(
            f"{where} has effects ({[*exported.ordered_effects, *exported.unordered_effects]}), which a SavedModel "
            "cannot have. Leave jax.debug.print and callbacks out of this mode."
        )
    names = sorted(signature.outputs)
    return Program(
        module=_for_old_readers(exported.mlir_module_serialized, where),
        kept=tuple(exported.module_kept_var_idx),
        taken=tuple(str(aval.dtype) for aval in exported.in_avals),
        given=tuple(_feature(aval) for aval in exported.out_avals),
        names=tuple(names),
    )


def _for_old_readers(module: bytes, where: str) -> bytes:
    """The module in an old version of StableHLO, without what is no operation of it."""
    with ir.Context() as context, ir.Location.unknown():
        try:
            parsed = stablehlo.deserialize_portable_artifact(context, module)
            for composite in list(_composites(parsed.operation)):
                _called(composite)
            # Source lines are written in a form that old readers refuse.
            passmanager.PassManager.parse("builtin.module(strip-debuginfo)").run(parsed.operation)
            return stablehlo.serialize_portable_artifact(parsed, STABLEHLO)
        except Exception as error:
            raise ExportError(
                f"{where} holds operations that TensorFlow {READERS[0]} does not read (StableHLO {STABLEHLO}): "
                f"{error}. Compute without them, or use the format 'stablehlo'."
            ) from error


def _composites(operation: Any) -> Iterator[Any]:
    for region in operation.regions:
        for block in region:
            for inner in block:
                yield from _composites(inner.operation)
                if inner.operation.name == "stablehlo.composite":
                    yield inner


def _called(composite: Any) -> None:
    """Calls the function that says what a composite operation is made of."""
    made_of = ir.FlatSymbolRefAttr(composite.attributes["decomposition"])
    types = [result.type for result in composite.results]
    call = func.CallOp(types, made_of, list(composite.operands), ip=ir.InsertionPoint(composite))
    for old, new in zip(composite.results, call.results, strict=True):
        old.replace_all_uses_with(new)
    composite.operation.erase()


def _abstract(feature: Feature, batch: Any) -> jax.ShapeDtypeStruct:
    shape = tuple(batch if size is None else size for size in feature.shape)
    return jax.ShapeDtypeStruct(shape, jnp.dtype(feature.dtype))


def _feature(aval: Any) -> Feature:
    return Feature(tuple(size if isinstance(size, int) else None for size in aval.shape), str(aval.dtype))
