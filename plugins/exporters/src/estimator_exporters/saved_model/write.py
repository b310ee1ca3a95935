"""Writes a `saved_model` export."""

from __future__ import annotations

from pathlib import Path

import tensorflow as tf

from estimator_core.errors import ExportError
from estimator_core.export import SERVING_METHODS, ExportRequest, SignatureSpec, host_programs
from estimator_exporters.bundle.write import finish
from estimator_exporters.saved_model.graph import Graph, shown_programs
from estimator_exporters.saved_model.old_readers import READERS, STABLEHLO
from estimator_exporters.saved_model.program import program_of

PROGRAM = "saved_model.pb"
#: The folder of every format, and that of tf.estimator, where TensorFlow Serving finds `tf_serving_warmup_requests`.
FOLDERS = ("assets", "assets.extra")


def check(request: ExportRequest) -> None:
    """Refuses programs that a SavedModel or its oldest reader cannot represent.

    Raises:
        ExportError: there is such a program. The message names the signature, transform or operation.
    """
    if request.fixed_batch_sizes is not None:
        raise ExportError(
            "A SavedModel has one program for all batch sizes, and this model has none. Build the receiver with "
            "default_batch_size=N, or use the format 'stablehlo'."
        )
    host_programs(request.input_transforms, request.receiver)
    for signature in request.signatures.values():
        _check_dtypes(signature)
        if signature.method in SERVING_METHODS:
            shown_programs(request, signature)
        program_of(signature, request.variables)


def write(request: ExportRequest, directory: Path) -> None:
    """Writes a SavedModel, assets, transforms and the manifest.

    Raises:
        ExportError: the same conditions as in `check`.
    """
    check(request)
    with tf.Graph().as_default():
        graph = Graph(request)
        written = {name: graph.signature(signature) for name, signature in request.signatures.items()}
        graph.save(directory, written)
    programs = {name: {"path": PROGRAM, **one.described()} for name, one in written.items()}
    readers = {"tensorflow": {"oldest": READERS[0], "newest": READERS[1]}}
    finish(request, directory, "saved_model", programs, asset_folders=FOLDERS, readers=readers, stablehlo=STABLEHLO)


def _check_dtypes(signature: SignatureSpec) -> None:
    for kind, named in (("input", signature.inputs), ("output", signature.outputs)):
        for name, feature in named.items():
            try:
                tf.as_dtype(feature.dtype)
            except TypeError as error:
                raise ExportError(
                    f"Signature {signature.name!r}: {kind} {name!r} is {feature.dtype}, which TensorFlow does not "
                    "know. Cast it to float32, or use the format 'stablehlo'."
                ) from error
