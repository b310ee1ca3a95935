"""StableHLO in the version that the oldest supported TensorFlow reads. Newer operations are decomposed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from jax.extend.mlir import ir, passmanager
from jax.extend.mlir.dialects import func, sdy, stablehlo

from estimator_core.errors import ExportError
from estimator_exporters.saved_model.gathers import unbatched_gather, unbatched_scatter

#: The TensorFlow versions that read the exports: the oldest supported one, and the newest tested one.
READERS = ("2.15", "2.21")
#: The StableHLO version that TensorFlow 2.15 supports.
STABLEHLO = "0.14.0"
#: The custom calls that TensorFlow itself resolves when it reads a program. Others need code that TensorFlow lacks.
_RESOLVED = re.compile(r"Sharding|shape_assertion|stablehlo\.dynamic_\w+")
_ILLEGAL = re.compile(r"failed to legalize operation 'vhlo\.(\w+?)(?:_v\d+)?'")


def for_old_readers(module: bytes, where: str) -> bytes:
    """Returns the module in an old version of StableHLO.

    Args:
        module: a portable artifact of any version.
        where: the name of the module in messages.

    Raises:
        ExportError: an operation does not exist in that version. The message names it.
    """
    with ir.Context() as context, ir.Location.unknown():
        unknown: list[str] = []
        listening: Any = context.attach_diagnostic_handler(lambda found: _noted(str(found.message), unknown))
        try:
            return _lowered(context, module)
        except Exception as error:
            named = ", ".join(dict.fromkeys(unknown)) or str(error)
            raise ExportError(
                f"{where} holds operations that TensorFlow {READERS[0]} does not read (StableHLO {STABLEHLO}): "
                f"{named}. Compute without them, or use the format 'stablehlo'."
            ) from error
        finally:
            listening.detach()


def foreign_calls(module: bytes) -> list[str]:
    """Returns the custom calls of a module that TensorFlow does not resolve itself."""
    with ir.Context() as context, ir.Location.unknown():
        parsed = _read(context, module)
        calls = [one for one in _operations(parsed.operation) if one.operation.name == "stablehlo.custom_call"]
        targets = {ir.StringAttr(one.operation.attributes["call_target_name"]).value for one in calls}
        return sorted(target for target in targets if not _RESOLVED.fullmatch(target))


def _noted(message: str, unknown: list[str]) -> bool:
    found = _ILLEGAL.search(message)
    if found is not None:
        unknown.append(found.group(1))
    return True


def _lowered(context: Any, module: bytes) -> bytes:
    parsed = _read(context, module)
    for operation in list(_operations(parsed.operation)):
        rewrite = _REWRITTEN.get(operation.operation.name)
        if rewrite is not None:
            rewrite(operation)
    # Source locations have a form that old readers refuse.
    passmanager.PassManager.parse("builtin.module(strip-debuginfo)").run(parsed.operation)
    return stablehlo.serialize_portable_artifact(parsed, STABLEHLO)


def _read(context: Any, module: bytes) -> Any:
    sdy.register_dialect(context)  # sharded models contain these operations, even though an export has one device
    return stablehlo.deserialize_portable_artifact(context, module)


def _operations(operation: Any) -> Iterator[Any]:
    for region in operation.regions:
        for block in region:
            for inner in block:
                yield from _operations(inner.operation)
                yield inner


def _called(composite: Any) -> None:
    """Replaces a composite operation by a call of its decomposition."""
    made_of = ir.FlatSymbolRefAttr(composite.attributes["decomposition"])
    types = [result.type for result in composite.results]
    call = func.CallOp(types, made_of, list(composite.operands), ip=ir.InsertionPoint(composite))
    for old, new in zip(composite.results, call.results, strict=True):
        old.replace_all_uses_with(new)
    composite.operation.erase()


def _of_sine(tangent: Any) -> None:
    """Replaces a tangent by sine over cosine."""
    (value,) = tangent.operation.operands
    with ir.InsertionPoint(tangent):
        found = stablehlo.DivOp(stablehlo.SineOp(value).result, stablehlo.CosineOp(value).result)
    tangent.operation.results[0].replace_all_uses_with(found.result)
    tangent.operation.erase()


def _unconstrained(constraint: Any) -> None:
    """Removes a sharding constraint, because an export has one device."""
    (value,) = constraint.operation.operands
    constraint.operation.results[0].replace_all_uses_with(value)
    constraint.operation.erase()


def _erased(mesh: Any) -> None:
    mesh.operation.erase()


_REWRITTEN: Mapping[str, Callable[[Any], None]] = {
    "sdy.mesh": _erased,
    "sdy.sharding_constraint": _unconstrained,
    "stablehlo.composite": _called,
    "stablehlo.gather": unbatched_gather,
    "stablehlo.scatter": unbatched_scatter,
    "stablehlo.tan": _of_sine,
}
