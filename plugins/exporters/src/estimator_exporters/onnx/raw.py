"""A graph that takes what clients send and returns what they see: the host part around a converted signature."""

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
    """What runs before and after a signature.

    Attributes:
        signature: the signature.
        receiver: what clients send.
        before: programs from the receiver to the inputs of the signature.
        after: programs from its outputs to what clients see.
    """

    signature: SignatureSpec
    receiver: dict[str, Feature]
    before: tuple[HostProgram, ...]
    after: tuple[HostProgram, ...]

    @classmethod
    def of(cls, request: ExportRequest, signature: SignatureSpec) -> HostPart | None:
        """The host part of a signature, tried out; None if there is none.

        Raises:
            ExportError: ONNX does not hold it; says which transform or operation.
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
        """What the estimator refuses and the graph does not, in words."""
        operations = {type(one) for program in (*self.before, *self.after) for one in program.operations}
        return [text for kind, text in UNCHECKED.items() if kind in operations]

    @property
    def needs(self) -> list[str]:
        """Packages that a reader needs beside onnxruntime, as pip names them."""
        return [PACKAGE] if EXTENSIONS in self.nodes()[0].domains else []

    @property
    def shown(self) -> Mapping[str, Feature]:
        """What clients see, by name."""
        return self.after[-1].features if self.after else self.signature.outputs

    def nodes(self) -> tuple[Nodes, int, dict[str, Value]]:
        """All nodes, how many of them stand before the model, and the values that clients see."""
        nodes = Nodes()
        taken = run_programs(nodes, self.before, _values(self.receiver, ""))
        for name in self.signature.inputs:
            nodes.add("Identity", taken[name].name, output=_MODEL + name)
        before = len(nodes.written)
        return nodes, before, run_programs(nodes, self.after, _values(self.signature.outputs, _MODEL))


def raw_model(part: HostPart, model: Any) -> Any:
    """An `onnx.ModelProto` from what clients send to what they see.

    Args:
        part: what runs before and after.
        model: the array signature, as `converted` returns it; its large tensors may lie in a file.
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
    """Class names instead of class ids."""
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
