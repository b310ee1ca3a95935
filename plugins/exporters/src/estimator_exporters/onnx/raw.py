"""A graph from the values that clients send to those that they receive: a converted signature with the host part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import onnx  # pyright: ignore[reportMissingImports]

from estimator_core.export import ExportRequest, Feature, HostProgram, NameOf, SignatureSpec, host_programs
from estimator_exporters.onnx.convert import tensor
from estimator_exporters.onnx.hashes import EXTENSIONS, PACKAGE
from estimator_exporters.onnx.host import UNCHECKED, run_programs
from estimator_exporters.onnx.nodes import CLASSIC, Nodes, Value

_SERVED = ("predict", "classify", "regress")
_CLASSES = ("classes", "all_classes")
_VERSIONS = {CLASSIC: 4, EXTENSIONS: 1}
_MODEL = "model/"


@dataclass(frozen=True, kw_only=True)
class HostPart:
    """The host programs before and after a signature.

    Attributes:
        signature: the signature that the programs belong to.
        receiver: the features that clients send.
        before: the programs from the receiver to the inputs of the signature.
        after: the programs from its outputs to the values that clients receive.
    """

    signature: SignatureSpec
    receiver: dict[str, Feature]
    before: tuple[HostProgram, ...]
    after: tuple[HostProgram, ...]

    @classmethod
    def of(cls, request: ExportRequest, signature: SignatureSpec) -> HostPart | None:
        """Returns the host part of a signature after a trial, or None if there is none.

        Raises:
            ExportError: ONNX cannot represent it. The message names the transform or operation.
        """
        if signature.method not in _SERVED:
            return None
        shown = host_programs(request.output_transforms, signature.outputs)
        names = _names(signature, shown[-1].features if shown else signature.outputs)
        if not (request.input_transforms or shown or names.outputs):
            return None
        received = {**request.receiver} if request.input_transforms else {**signature.inputs}
        part = cls(
            signature=signature,
            receiver=received,
            before=host_programs(request.input_transforms, received),
            after=(*shown, *((names,) if names.outputs else ())),
        )
        part.nodes()
        return part

    @property
    def unchecked(self) -> list[str]:
        """Describes the checks of the Estimator that the graph lacks."""
        operations = {type(one) for program in (*self.before, *self.after) for one in program.operations}
        return [text for kind, text in UNCHECKED.items() if kind in operations]

    @property
    def needs(self) -> list[str]:
        """Returns the packages that a reader needs in addition to onnxruntime, by their pip names."""
        return [PACKAGE] if EXTENSIONS in self.nodes()[0].domains else []

    @property
    def shown(self) -> Mapping[str, Feature]:
        """Returns the features that clients receive, by name."""
        return self.after[-1].features if self.after else self.signature.outputs

    def nodes(self) -> tuple[Nodes, int, dict[str, Value]]:
        """Returns all nodes, the number of nodes before the model, and the values that clients receive."""
        nodes = Nodes()
        taken = run_programs(nodes, self.before, _values(self.receiver, ""))
        for name in self.signature.inputs:
            nodes.add("Identity", taken[name].name, output=_MODEL + name)
        before = len(nodes.written)
        return nodes, before, run_programs(nodes, self.after, _values(self.signature.outputs, _MODEL))


def raw_model(part: HostPart, model: Any) -> Any:
    """Returns an `onnx.ModelProto` from the values that clients send to the values that they receive.

    Args:
        part: the host programs before and after the signature.
        model: the array signature, as `converted` returns it. Its large tensors may be in a file.
    """
    nodes, before, shown = part.nodes()
    inner = onnx.compose.add_prefix(model, _MODEL)
    last = [onnx.helper.make_node("Identity", [shown[name].name], [name]) for name in part.shown]
    graph = onnx.helper.make_graph(
        [*nodes.written[:before], *inner.graph.node, *nodes.written[before:], *last],
        part.signature.name,
        [tensor(name, feature) for name, feature in part.receiver.items()],
        [tensor(name, feature) for name, feature in part.shown.items()],
        initializer=[*nodes.constants, *inner.graph.initializer],
        value_info=inner.graph.value_info,
    )
    domains = [onnx.helper.make_opsetid(domain, _VERSIONS[domain]) for domain in sorted(nodes.domains)]
    known = {one.domain for one in inner.opset_import}
    made = onnx.helper.make_model(
        graph,
        functions=inner.functions,
        opset_imports=[*inner.opset_import, *(one for one in domains if one.domain not in known)],
        producer_name="estimator-exporters",
    )
    made.ir_version = inner.ir_version
    return made


def _names(signature: SignatureSpec, shown: Mapping[str, Feature]) -> HostProgram:
    """Returns the program that replaces class ids by class names."""
    named = [
        name
        for name in _CLASSES
        if signature.class_names and name in shown and shown[name].dtype.startswith(("int", "uint"))
    ]
    if not named:
        return HostProgram()
    names = tuple(signature.class_names or ())
    return HostProgram(
        operations=tuple(NameOf(input=name, output=f"{name} named", names=names) for name in named),
        outputs={name: f"{name} named" if name in named else name for name in shown},
        features={name: Feature(one.shape, "string") if name in named else one for name, one in shown.items()},
    )


def _values(features: Mapping[str, Feature], prefix: str) -> dict[str, Value]:
    return {
        name: Value(prefix + name, tuple(size or 1 for size in feature.shape[1:]), feature.dtype)
        for name, feature in features.items()
    }
