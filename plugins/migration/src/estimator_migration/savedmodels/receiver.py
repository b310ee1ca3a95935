"""Writes Python source of receivers that accept the inputs of a SavedModel."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from estimator_core.errors import ArgumentError
from estimator_migration.savedmodels.records import (
    ExampleFeature,
    MetaGraph,
    Parsing,
    SavedModel,
    Signature,
    Tensor,
    Vocabulary,
)

#: The names of serialized records in requests: in exports of this library, and in signatures that classify.
_RECORDS = ("examples", "inputs")
_DEFAULT, _FUNCTION = "serving_default", "serving_input_receiver_fn"
_FILLS = {"int64": -1, "string": "", "float32": 0.0}


@dataclass(frozen=True, kw_only=True)
class Receiver:
    """A receiver in Python.

    Args:
        name: the name of its function.
        signatures: the signatures that it serves.
        source: the source that defines it.
        notes: the differences, and the parts that are left to the user.
    """

    name: str
    signatures: tuple[str, ...]
    source: str
    notes: tuple[str, ...]


def receivers(graph: MetaGraph) -> list[Receiver]:
    """Returns one receiver for each set of inputs of signatures, that of the default signature first."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for name, signature in sorted(graph.signatures.items(), key=lambda each: each[0] != _DEFAULT):
        if signature.inputs:
            groups.setdefault(tuple(sorted(tensor.name for tensor in signature.inputs.values())), []).append(name)
    texts = [names for names in groups.values() if _takes_one_string(_plainest(graph, names))]
    made: list[Receiver] = []
    taken: set[str] = set()
    for names in groups.values():
        function = _unique(f"{_word(names[0])}_receiver_fn", taken) if made else _FUNCTION
        spec = _unique(f"{function.upper().removesuffix('_RECEIVER_FN')}_FEATURES", taken) if made else "FEATURES"
        taken |= {function, f"make_{function}", spec}
        made.append(_receiver(graph, names, function, spec, alone=texts == [names]))
    return made


def receiver_source(model: SavedModel) -> str:
    """Returns a Python file with the receivers of the first graph, its vocabularies and its class names.

    Args:
        model: the result of `read_saved_model`.

    Raises:
        ArgumentError: no signature has an input, or a part of the model has no equivalent in Python.
    """
    graph = model.graphs[0]
    made = receivers(graph)
    if not made:
        raise ArgumentError(f"The SavedModel {model.path} has no signature, so there is nothing to receive.")
    about = f"What {model.path} took (TensorFlow {graph.tensorflow}), by `estimator migrate savedmodel`."
    head = f'""{_text(about)}""'
    parts = [head, "import estimator_core as ec", *_vocabularies(model, graph)]
    source = "\n\n".join([*parts, *("\n".join(_commented(one)) for one in made)]) + "\n"
    try:
        compile(source, "receiver", "exec")
    except (SyntaxError, ValueError) as error:
        raise ArgumentError(
            f"The receiver of {model.path} cannot be written as Python: {error}. Write it by hand."
        ) from error
    return source


def _commented(receiver: Receiver) -> Iterator[str]:
    for note in [f"The receiver of {', '.join(receiver.signatures)}.", *(f"MIGRATE: {one}" for one in receiver.notes)]:
        yield f"# {' '.join(note.split())}"  # names may contain line ends
    yield receiver.source


def _receiver(graph: MetaGraph, names: list[str], function: str, spec: str, *, alone: bool) -> Receiver:
    """Returns the receiver of signatures. `alone` means that no other signature takes one string."""
    signature = _plainest(graph, names)
    inputs = {tensor.name for tensor in signature.inputs.values()}
    shown = [one for one in graph.parsings if one.source in inputs]
    hidden = [one for one in graph.parsings if one.source is None]  # in functions of TensorFlow 2
    if _takes_one_string(signature) and (len(shown) == 1 or (not shown and len(hidden) == 1 and alone)):
        (received,) = signature.inputs
        (parsing,) = shown or hidden
        doubt = [] if shown else [f"the graph does not show that {received!r} is what {parsing.node} parses: check it."]
        return _of_records(function, tuple(names), parsing, received, spec, doubt)
    texts = [name for name, tensor in signature.inputs.items() if tensor.dtype == "string"]
    unclear = [one.node for one in shown or hidden] if texts else []
    doubt = [
        f"the graph parses tf.Examples in {', '.join(unclear)}. If {', '.join(texts)} holds them, write "
        "build_parsing_serving_input_receiver_fn with the features that `estimator migrate savedmodel` lists."
    ]
    return _of_features(function, tuple(names), signature, doubt if unclear else [])


def _plainest(graph: MetaGraph, names: list[str]) -> Signature:
    """Returns the signature with the best names: one that classifies calls every input "inputs"."""
    found = [graph.signatures[name] for name in names]
    return next((one for one in found if one.method == "predict"), found[0])


def _takes_one_string(signature: Signature) -> bool:
    return [tensor.dtype for tensor in signature.inputs.values()] == ["string"]


def _of_records(
    function: str, names: tuple[str, ...], parsing: Parsing, received: str, spec: str, doubt: list[str]
) -> Receiver:
    notes = [*doubt]
    lines = [f"{spec} = {{"]
    lines += [f"    {_text(key)}: {_spec(key, feature, notes)}," for key, feature in parsing.features.items()]
    lines.append("}")
    call = f"ec.export.build_parsing_serving_input_receiver_fn({spec})"
    if received in _RECORDS:
        lines.append(f"{function} = {call}")
        return Receiver(name=function, signatures=names, source="\n".join(lines), notes=tuple(notes))
    notes.append(
        f"clients send {received!r}, so features of any number of values have as many places as `places` says, or one."
    )
    lines += [
        "",
        "",
        f"def {function}():",
        f"    parsed = {call}()",
        f'    records = {{{_text(received)}: parsed.receiver_tensors["examples"]}}',
        f'    renamed = ec.export.Rename({{{_text(received)}: "examples"}})',
        "    return ec.export.ServingInputReceiver(parsed.features, records, transforms=(renamed, *parsed.transforms))",
    ]
    return Receiver(name=function, signatures=names, source="\n".join(lines), notes=tuple(notes))


def _spec(key: str, feature: ExampleFeature, notes: list[str]) -> str:
    if feature.kind == "fixed":
        default = "" if feature.default is None else f", default_value={_literal(feature.default)}"
        return f"ec.export.FixedLenFeature({feature.shape!r}, {_text(feature.dtype)}{default})"
    if feature.kind == "sequence" and feature.shape:
        notes.append(
            f"{key} is a sequence of items of shape {feature.shape}: here, its values are in one row. Reshape them."
        )
    if feature.kind == "sequence" and feature.default not in (None, _FILLS.get(feature.dtype)):
        notes.append(f"{key} was padded with {feature.default!r}, here with {_FILLS.get(feature.dtype)!r}.")
    if feature.kind == "ragged":
        notes.append(f"{key} was a RaggedTensor; here, its rows are padded with {_FILLS.get(feature.dtype)!r}.")
    return f"ec.export.VarLenFeature({_text(feature.dtype)})"


def _of_features(function: str, names: tuple[str, ...], signature: Signature, doubt: list[str]) -> Receiver:
    free: list[str] = []
    notes = [*doubt]
    lines: list[str] = []
    batches = {tensor.shape[0] for tensor in signature.inputs.values() if tensor.shape}
    batch = next(iter(batches)) if len(batches) == 1 else None
    for name, tensor in signature.inputs.items():
        lines.append(f"    {_text(name)}: ec.export.Feature({_shape(name, tensor, free)}, {_text(tensor.dtype)}),")
    if signature.method in ("classify", "regress") and list(signature.inputs) == ["inputs"]:
        notes.append(
            f"signatures that {signature.method} name their input 'inputs': write the name that model_fn reads."
        )
    size = f", default_batch_size={batch}" if batch is not None else ""
    if free:
        notes.append(f"free sizes are fixed here: {', '.join(free)}. Pass the largest that clients send.")
        head = f"def make_{function}({', '.join(f'{one}: int' for one in free)}):\n    return "
        lines = [f"    {line}" for line in lines]
    else:
        head = f"{function} = "
    close = "    }" if free else "}"
    source = [f"{head}ec.export.build_raw_serving_input_receiver_fn({{", *lines, f"{close}{size})"]
    return Receiver(name=function, signatures=names, source="\n".join(source), notes=tuple(notes))


def _shape(name: str, tensor: Tensor, free: list[str]) -> str:
    if tensor.shape is None:
        free.append(_unique(f"{_word(name)}_size", free))
        return f"(None, {free[-1]})"
    sizes = ["None"] if tensor.shape else []
    for axis, size in enumerate(tensor.shape[1:], 1):
        if size is None:
            free.append(_unique(f"{_word(name)}_{axis}", free))
        sizes.append(free[-1] if size is None else str(size))
    return f"({', '.join(sizes)}{',' if len(sizes) == 1 else ''})"


def _vocabularies(model: SavedModel, graph: MetaGraph) -> Iterator[str]:
    found = {one.feature: _known(model, one) for one in graph.vocabularies if one.feature is not None}
    lines = [f"    {_text(feature)}: {value}," for feature, value in found.items() if value]
    if lines:
        about = "# The words of features, or the file that holds them."
        yield "\n".join([about, "VOCABULARIES = {", *lines, "}"])
    labels = [one for one in graph.vocabularies if one.outputs and one.words is not None]
    if labels:
        yield f"LABEL_VOCABULARY = {_listed(labels[0].words or ())}"


def _known(model: SavedModel, vocabulary: Vocabulary) -> str | None:
    if vocabulary.words is not None:
        return _listed(vocabulary.words)
    # An absolute path, because the file may be run elsewhere.
    return _text(str(Path(model.path).resolve() / "assets" / vocabulary.asset)) if vocabulary.asset else None


def _listed(words: tuple[str | int, ...]) -> str:
    return f"[{', '.join(_text(word) if isinstance(word, str) else str(word) for word in words)}]"


def _text(value: str) -> str:
    """Returns a text in double quotes. Surrogates, as in file names that are not UTF-8, are escaped."""
    written = json.dumps(value, ensure_ascii=False)
    return re.sub("[\ud800-\udfff]", lambda half: f"\\u{ord(half[0]):04x}", written)


def _literal(value: Any) -> str:
    """Returns a default as Python source."""
    if isinstance(value, (list, tuple)):
        items: list[Any] = [*value]
        return f"[{', '.join(map(_literal, items))}]"
    return f'float("{value}")' if isinstance(value, float) and not math.isfinite(value) else repr(value)


def _word(name: str) -> str:
    word = re.sub(r"\W", "_", name, flags=re.ASCII)
    return word if word[:1].isalpha() else f"x{word}"


def _unique(name: str, taken: Collection[str]) -> str:
    """Returns the name, with a number if it is taken."""
    found, number = name, 1
    while found in taken:
        number += 1
        found = f"{name}_{number}"
    return found
