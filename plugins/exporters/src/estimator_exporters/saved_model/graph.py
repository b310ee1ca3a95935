"""A SavedModel in the form of tf.estimator: one graph, and signatures that name its tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import jax
import numpy as np
import tensorflow as tf
from tensorflow.compiler.tf2xla.python import xla as xla_ops  # pyright: ignore[reportMissingImports]

from estimator_core.export import (
    SERVING_METHODS,
    ExportRequest,
    Feature,
    HostProgram,
    NameOf,
    SignatureSpec,
    host_programs,
)
from estimator_exporters.saved_model.host import narrowed, run_programs
from estimator_exporters.saved_model.program import CONVENTION, program_of

v1 = tf.compat.v1
_CLASSES = ("classes", "all_classes")
_INPUTS = "inputs"
_METHODS = {
    "predict": "tensorflow/serving/predict",
    "classify": "tensorflow/serving/classify",
    "regress": "tensorflow/serving/regress",
    "eval": "tensorflow/supervised/eval",
    "train": "tensorflow/supervised/training",
}

Tensors = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Written:
    """The tensors of a signature.

    Attributes:
        received: the tensors that a client sends, by the names of the receiver.
        shown: the tensors that a client receives.
        taken: the input arrays of the compiled function.
        given: the output arrays of the compiled function.
    """

    received: Tensors
    shown: Tensors
    taken: Tensors
    given: Tensors

    def described(self) -> dict[str, Any]:
        """Returns the manifest entry: the names of the tensors, and the features that clients send and receive."""
        parts = {"received": self.received, "shown": self.shown, "taken": self.taken, "given": self.given}
        names = {part: {name: tensor.name for name, tensor in found.items()} for part, found in parts.items()}
        return {**names, "client": {"inputs": _forms(self.received), "outputs": _forms(self.shown)}}


class Graph:
    """The graph of an export during its creation. Its TensorFlow graph must be the default graph.

    Args:
        request: the request for the export.
    """

    def __init__(self, request: ExportRequest) -> None:
        self._request = request
        self._initial = {path: v1.placeholder(value.dtype, value.shape) for path, value in request.variables.items()}
        self._variables = {
            path: v1.Variable(initial, use_resource=True, trainable=False, name=f"variables/{place}")
            for place, (path, initial) in enumerate(self._initial.items())
        }
        self._computed: dict[Any, tuple[Tensors, Tensors]] = {}

    def signature(self, signature: SignatureSpec) -> Written:
        """Adds the computation of a signature."""
        if signature.method not in SERVING_METHODS:
            received = _placeholders(signature.inputs)
            taken, given = self._run(signature, received)
            return Written(received=received, shown=given, taken=taken, given=given)
        received = self._received if self._request.input_transforms else self._features
        key = signature.function
        if key not in self._computed:
            self._computed[key] = self._run(signature, self._transformed)
        taken, given = self._computed[key]
        return Written(received=received, shown=self._shown(signature, given), taken=taken, given=given)

    def save(self, directory: Path, written: Mapping[str, Written]) -> None:
        """Writes the graph and the variables."""
        methods = {name: signature.method for name, signature in self._request.signatures.items()}
        definitions = {name: _definition(methods[name], one) for name, one in written.items()}
        by_path = dict(self._variables.items())
        ready = v1.tables_initializer()  # a graph must not change after its session has started
        with v1.Session() as session:
            for path, variable in self._variables.items():
                session.run(variable.initializer, {self._initial[path]: self._request.variables[path]})
            builder = v1.saved_model.Builder(str(directory))
            builder.add_meta_graph_and_variables(
                session,
                [tf.saved_model.SERVING],
                signature_def_map=definitions,
                main_op=ready,
                strip_default_attrs=True,  # readers refuse unknown attributes
                saver=v1.train.Saver(by_path) if by_path else None,
            )
            builder.save()

    @cached_property
    def _received(self) -> Tensors:
        return _placeholders(self._request.receiver)

    @cached_property
    def _features(self) -> Tensors:
        serving = [one for one in self._request.signatures.values() if one.method in SERVING_METHODS]
        return _placeholders(serving[0].inputs)

    @cached_property
    def _transformed(self) -> Tensors:
        """Returns the inputs of serving signatures, after the host part."""
        if not self._request.input_transforms:
            return self._features
        return run_programs(host_programs(self._request.input_transforms, self._request.receiver), self._received)

    def _run(self, signature: SignatureSpec, features: Tensors) -> tuple[Tensors, Tensors]:
        program = program_of(signature, self._request.variables)
        taken = {name: tf.identity(features[name]) for name in signature.inputs}
        values: list[Any] = jax.tree.leaves((dict(self._variables), dict(taken)))
        names = [*sorted(self._variables), *sorted(taken)]
        arguments = [
            narrowed(tf.convert_to_tensor(value), dtype, f"The input {name!r}")
            for name, value, dtype in zip(names, values, program.taken, strict=True)
        ]
        outputs: Any = xla_ops.call_module(
            [arguments[place] for place in program.kept],
            version=CONVENTION,
            module=program.module,
            Sout=[tf.TensorShape(feature.shape) for feature in program.given],
            Tout=[tf.as_dtype(feature.dtype) for feature in program.given],
            platforms=[platform.upper() for platform in program.platforms],
            function_list=[],
            has_token_input_output=False,
            disabled_checks=[],
        )
        return taken, {name: tf.identity(value) for name, value in zip(program.names, outputs, strict=True)}

    def _shown(self, signature: SignatureSpec, given: Tensors) -> Tensors:
        return run_programs(shown_programs(self._request, signature), given)


def shown_programs(request: ExportRequest, signature: SignatureSpec) -> tuple[HostProgram, ...]:
    """Returns the programs from the outputs of a serving signature to the tensors that a client receives.

    Raises:
        ExportError: a transform of predictions does not describe its operations.
    """
    programs = host_programs(request.output_transforms, signature.outputs)
    outputs = programs[-1].features if programs else dict(signature.outputs)
    ids = [name for name in _CLASSES if name in outputs and np.dtype(_numpy(outputs[name])).kind in "iu"]
    if not signature.class_names or not ids:
        return programs
    values = {name: f"{name} by name" for name in ids}
    named = HostProgram(
        operations=tuple(NameOf(input=name, output=values[name], names=signature.class_names) for name in ids),
        outputs={name: values.get(name, name) for name in outputs},
        features={name: Feature(one.shape, "string") if name in ids else one for name, one in outputs.items()},
    )
    return (*programs, named)


def _forms(tensors: Tensors) -> dict[str, Any]:
    return {name: {"shape": tensor.shape.as_list(), "dtype": tensor.dtype.name} for name, tensor in tensors.items()}


def _numpy(feature: Feature) -> Any:
    return object if feature.dtype in ("string", "bfloat16") else feature.dtype


def _placeholders(features: Mapping[str, Feature]) -> dict[str, Any]:
    return {name: v1.placeholder(tf.as_dtype(feature.dtype), feature.shape) for name, feature in features.items()}


def _definition(method: str, written: Written) -> Any:
    """Returns a definition with the names of tf.estimator. Classify and regress take one string tensor, "inputs"."""
    received = dict(written.received)
    records = len(received) == 1 and all(tensor.dtype == tf.string for tensor in received.values())
    if method in ("classify", "regress"):
        if records:
            received = {_INPUTS: next(iter(received.values()))}
        else:
            method = "predict"  # TensorFlow Serving classifies and regresses only tf.Examples
    info = v1.saved_model.build_tensor_info
    return v1.saved_model.build_signature_def(
        {name: info(tensor) for name, tensor in received.items()},
        {name: info(tensor) for name, tensor in written.shown.items()},
        _METHODS[method],
    )
