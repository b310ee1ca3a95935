"""StableHLO in the version that the oldest promised TensorFlow reads; newer operations as what they are made of."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from jax.extend.mlir import ir, passmanager
from jax.extend.mlir.dialects import func, sdy, stablehlo

from estimator_core.errors import ExportError
from estimator_exporters.saved_model.gathers import unbatched_gather, unbatched_scatter

#: The TensorFlow that is promised to read the exports: the oldest, and the newest they are tried with.
READERS = ("2.15", "2.21")
#: What TensorFlow 2.15 knows of StableHLO.
STABLEHLO = "0.14.0"
#: Custom calls that TensorFlow itself resolves while it reads a program; any other needs code that it lacks.
_RESOLVED = re.compile(r"Sharding|shape_assertion|stablehlo\.dynamic_\w+")
_ILLEGAL = re.compile(r"failed to legalize operation 'vhlo\.(\w+?)(?:_v\d+)?'")


def for_old_readers(module: bytes, where: str) -> bytes:
    """The module in an old version of StableHLO.

    Args:
        module: a portable artifact of any version.
        where: what messages call it.

    Raises:
        ExportError: an operation cannot be written in that version; says which.
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
    """The custom calls of a module that no TensorFlow resolves by itself."""
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
    # Source lines are written in a form that old readers refuse.
    passmanager.PassManager.parse("builtin.module(strip-debuginfo)").run(parsed.operation)
    return stablehlo.serialize_portable_artifact(parsed, STABLEHLO)


def _read(context: Any, module: bytes) -> Any:
    sdy.register_dialect(context)  # a model that was spread over devices says how, for the one device of an export too
    return stablehlo.deserialize_portable_artifact(context, module)


def _operations(operation: Any) -> Iterator[Any]:
    for region in operation.regions:
        for block in region:
            for inner in block:
                yield from _operations(inner.operation)
                yield inner


def _called(composite: Any) -> None:
    """Calls the function that says what a composite operation is made of."""
    made_of = ir.FlatSymbolRefAttr(composite.attributes["decomposition"])
    types = [result.type for result in composite.results]
    call = func.CallOp(types, made_of, list(composite.operands), ip=ir.InsertionPoint(composite))
    for old, new in zip(composite.results, call.results, strict=True):
        old.replace_all_uses_with(new)
    composite.operation.erase()


def _of_sine(tangent: Any) -> None:
    """A tangent as sine over cosine."""
    (value,) = tangent.operation.operands
    with ir.InsertionPoint(tangent):
        found = stablehlo.DivOp(stablehlo.SineOp(value).result, stablehlo.CosineOp(value).result)
    tangent.operation.results[0].replace_all_uses_with(found.result)
    tangent.operation.erase()


def _unconstrained(constraint: Any) -> None:
    """An array that is not constrained to devices, because an export has one."""
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
