"""Converts a signature to an ONNX graph. jax2onnx converts it, and the graph then gets the names and dtypes."""

from __future__ import annotations

import contextlib
import logging
import threading
import warnings
from collections.abc import Generator, Mapping
from importlib import metadata
from typing import Any

import jax
import jax.numpy as jnp
import onnx  # pyright: ignore[reportMissingImports]
from jax import export as jax_export
from jax.extend import core

from estimator_core.errors import ExportError
from estimator_core.export import Feature, SignatureSpec
from estimator_exporters.onnx.nodes import element_type
from estimator_exporters.onnx.primitives import evaluated, operations

#: The version of ai.onnx, and of the file format. onnxruntime reads both since 1.20.
OPSET, IR = 21, 10
_LINE = "\n"
_ONE_CONVERSION = threading.Lock()


def traced(signature: SignatureSpec, variables: Mapping[str, Any]) -> core.ClosedJaxpr:
    """Returns the program of a signature for any batch size, in the form that the converter accepts.

    It is traced here and not by the converter. During tracing, the converter replaces functions of jax and Flax by its
    own. It supports the arguments of only some versions of these libraries.
    """
    outputs, inputs = list(signature.outputs), _abstract(signature)

    def positional(*arrays: Any) -> tuple[Any, ...]:
        found = signature.function(variables, dict(zip(signature.inputs, arrays, strict=True)))
        return tuple(found[name] for name in outputs)

    program = jax.make_jaxpr(positional)(*inputs)
    return jax.make_jaxpr(lambda *arrays: tuple(evaluated(program, arrays)))(*inputs)


def check_operations(name: str, program: core.ClosedJaxpr) -> None:
    """Refuses a program with an operation that the converter does not support.

    Raises:
        ExportError: there is such an operation. The message names it.
    """
    from jax2onnx.plugins.plugin_system import (  # pyright: ignore[reportMissingImports]
        PLUGIN_REGISTRY,
        import_all_plugins,
    )

    with _quiet(), _kept_functions():
        import_all_plugins()
    unknown = sorted(operations(program.jaxpr) - PLUGIN_REGISTRY.keys())
    if unknown:
        raise ExportError(
            f"Signature {name!r} uses {', '.join(unknown)}, which jax2onnx does not convert. Write the model without, "
            "or use the format 'stablehlo'."
        )


def converted(signature: SignatureSpec, program: core.ClosedJaxpr) -> Any:
    """Returns an `onnx.ModelProto` with the inputs and outputs of a signature.

    Args:
        signature: the signature whose names and dtypes the graph gets.
        program: the program that `traced` returned for it.

    Raises:
        ExportError: the converter refuses the program. The message has its reason.
    """
    arguments = {variable: f"argument_{place}" for place, variable in enumerate(program.jaxpr.invars)}
    # One array may be two outputs, or an input and an output. The converter has one name per array.
    results = {
        key: f"result_{number}" for number, key in enumerate(dict.fromkeys(_keys(program))) if key not in arguments
    }
    given = _converted(signature, program, arguments, results) if results else onnx.ModelProto()
    return _named(given, signature, program, arguments | results)


def _converted(signature: SignatureSpec, program: core.ClosedJaxpr, arguments: Any, results: Any) -> Any:
    import jax2onnx  # pyright: ignore[reportMissingImports]

    keys = _keys(program)
    places = [keys.index(key) for key in results]

    def distinct(*arrays: Any) -> tuple[Any, ...]:
        found = evaluated(program, arrays)
        return tuple(found[place] for place in places)

    try:
        with _quiet(), _without_replacements():
            return jax2onnx.to_onnx(
                distinct,
                [jax.ShapeDtypeStruct(one.shape, one.dtype) for one in program.in_avals],
                model_name=signature.name,
                opset=OPSET,
                enable_double_precision=_has_doubles(program),
                input_names=list(arguments.values()),
                output_names=list(results.values()),
            )
    except ExportError:  # of _without_replacements
        raise
    except Exception as error:
        said = f"{type(error).__name__}: {str(error).partition(_LINE)[0]}"
        raise ExportError(
            f"Signature {signature.name!r} cannot be converted to ONNX by jax2onnx ({said}). The format 'stablehlo' "
            "takes every jax program."
        ) from error


def _named(given: Any, signature: SignatureSpec, program: core.ClosedJaxpr, values: Mapping[Any, str]) -> Any:
    """Adds nodes before the graph that cast inputs to the dtypes of the program, and nodes after it that name the
    outputs.
    """
    graph = given.graph
    first = [
        _cast(name, values[variable], feature, str(variable.aval.dtype))
        for (name, feature), variable in zip(signature.inputs.items(), program.jaxpr.invars, strict=True)
    ]
    last = [
        onnx.helper.make_node("Identity", [values[key]], [name], name=f"output/{name}")
        for name, key in zip(signature.outputs, _keys(program), strict=True)
    ]
    model = onnx.helper.make_model(
        onnx.helper.make_graph(
            [*first, *graph.node, *last],
            signature.name,
            [tensor(name, feature) for name, feature in signature.inputs.items()],
            [tensor(name, feature) for name, feature in signature.outputs.items()],
            initializer=graph.initializer,
            value_info=graph.value_info,
        ),
        functions=given.functions,
        opset_imports=list(given.opset_import) or [onnx.helper.make_opsetid("", OPSET)],
        producer_name="estimator-exporters",
    )
    model.ir_version = IR
    return model


def tensor(name: str, feature: Feature) -> Any:
    """Returns the description of an input or output of a graph."""
    sizes = ["batch" if size is None else size for size in feature.shape]
    return onnx.helper.make_tensor_value_info(name, element_type(feature.dtype), sizes)


def _cast(name: str, value: str, feature: Feature, dtype: str) -> Any:
    if feature.dtype == dtype:
        return onnx.helper.make_node("Identity", [name], [value], name=f"input/{name}")
    return onnx.helper.make_node("Cast", [name], [value], name=f"input/{name}", to=element_type(dtype))


def _keys(program: core.ClosedJaxpr) -> list[Any]:
    """Returns a key for each output: its variable, or the index of a constant, which has no variable."""
    return [
        ("constant", place) if isinstance(variable, core.Literal) else variable
        for place, variable in enumerate(program.jaxpr.outvars)
    ]


def _abstract(signature: SignatureSpec) -> list[jax.ShapeDtypeStruct]:
    (batch,) = jax_export.symbolic_shape("B", scope=jax_export.SymbolicScope(["B >= 1"]))
    return [
        jax.ShapeDtypeStruct(tuple(batch if size is None else size for size in feature.shape), feature.dtype)
        for feature in signature.inputs.values()
    ]


@contextlib.contextmanager
def _kept_functions() -> Generator[None]:
    """Restores the functions of jax.numpy that the converter replaces for good when its plugins are imported.

    Its `cumsum` refuses arguments that models pass.
    """
    before = dict(vars(jnp))
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(jnp, name, value)


def _has_doubles(program: core.ClosedJaxpr) -> bool:
    """Returns whether a program computes with float64. The converter then makes all its constants float64."""
    values = [*program.in_avals, *(one.aval for equation in program.eqns for one in equation.outvars)]
    return any(getattr(value, "dtype", None) == "float64" for value in values)


@contextlib.contextmanager
def _without_replacements() -> Generator[None]:
    """Prevents the converter from replacing functions of jax and Flax, and the setting `jax_enable_x64`, in the whole
    process while it traces.

    The program consists of primitives with their dtypes, so it needs neither. Another thread may trace at this time.
    """
    from jax2onnx import user_interface  # pyright: ignore[reportMissingImports]
    from jax2onnx.converter import conversion_api  # pyright: ignore[reportMissingImports]

    where = {
        "_activate_plugin_worlds": conversion_api,
        "_force_jax_x64": conversion_api,
        "_temporary_x64": user_interface,
    }
    if lacking := sorted(name for name, module in where.items() if not hasattr(module, name)):
        raise ExportError(
            f"The format 'onnx' does not support jax2onnx {metadata.version('jax2onnx')}: it has no "
            f"{', '.join(lacking)}. Install jax2onnx 0.13, or use the format 'stablehlo'."
        )
    with _ONE_CONVERSION:
        before = {name: getattr(module, name) for name, module in where.items()}
        try:
            for name, module in where.items():
                setattr(module, name, lambda *_: contextlib.nullcontext())
            yield
        finally:
            for name, value in before.items():
                setattr(where[name], name, value)


@contextlib.contextmanager
def _quiet() -> Generator[None]:
    """Suppresses logs and warnings of the converter about skipped plugins and values.

    Errors of the converter are raised. If warnings are errors, the converter silently skips plugins that warn on
    import.
    """
    loggers = [logging.getLogger(name) for name in ("jax2onnx", "onnx_ir")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
