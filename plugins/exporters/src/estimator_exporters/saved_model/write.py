"""Writing a `saved_model` export."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tensorflow as tf
from jax.experimental import jax2tf

from estimator_core.errors import ExportError
from estimator_core.export import ExportRequest, Feature, SignatureSpec
from estimator_exporters.bundle.write import finish

_PLATFORMS = ("cpu", "cuda", "tpu")


def write(request: ExportRequest, directory: Path) -> None:
    """Writes a SavedModel, assets, transforms and the manifest.

    Raises:
        ExportError: a signature cannot be converted; says why.
    """
    if request.fixed_batch_sizes is not None:
        raise ExportError(
            "A SavedModel has one program for all batch sizes, and this model has none. Build the receiver with "
            "default_batch_size=N, or use the format 'stablehlo'."
        )
    for signature in request.signatures.values():
        _check(signature)
    module: Any = tf.Module()
    # A list: TensorFlow tracks no dict whose keys it cannot turn into attribute names.
    values: Any = request.variables.values()
    module.exported = [tf.Variable(value, trainable=False, name=f"v{i}") for i, value in enumerate(values)]
    variables: Any = dict(zip(request.variables, module.exported, strict=True))
    functions = {name: _concrete(signature, variables) for name, signature in request.signatures.items()}
    tf.saved_model.save(module, str(directory), signatures=functions)
    finish(request, directory, "saved_model", dict.fromkeys(request.signatures, "saved_model.pb"))


def _concrete(signature: SignatureSpec, variables: dict[str, Any]) -> Any:
    shapes: Any = {name: _polymorphic(feature) for name, feature in signature.inputs.items()}
    try:
        converted = jax2tf.convert(
            signature.function,
            polymorphic_shapes=(None, shapes),
            with_gradient=False,
            native_serialization_platforms=_PLATFORMS,
        )

        def call(**inputs: Any) -> Any:
            return {name: tf.identity(value, name=None) for name, value in converted(variables, inputs).items()}

        specs = {
            name: tf.TensorSpec(feature.shape, feature.dtype, name=name) for name, feature in signature.inputs.items()
        }
        return tf.function(call, autograph=False).get_concrete_function(**specs)
    except Exception as error:
        raise ExportError(f"Signature {signature.name!r} cannot be converted to TensorFlow: {error}") from error


def _polymorphic(feature: Feature) -> str | None:
    if feature.shape[:1] != (None,):
        return None
    return f"({', '.join('b' if size is None else str(size) for size in feature.shape)})"


def _check(signature: SignatureSpec) -> None:
    """Refuses what TensorFlow does not take, before anything is converted."""
    for name in signature.inputs:
        if not name.isidentifier():
            raise ExportError(
                f"Signature {signature.name!r}: the input {name!r} cannot be an argument of a TensorFlow signature, "
                "since its name is no identifier. Rename it, or use the format 'stablehlo'."
            )
    for kind, named in (("input", signature.inputs), ("output", signature.outputs)):
        for name, feature in named.items():
            try:
                tf.as_dtype(feature.dtype)
            except TypeError as error:
                raise ExportError(
                    f"Signature {signature.name!r}: {kind} {name!r} is {feature.dtype}, which TensorFlow does not "
                    "know. Cast it to float32, or use the format 'stablehlo'."
                ) from error
