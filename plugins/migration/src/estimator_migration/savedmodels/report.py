"""The contents of a SavedModel as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from estimator_migration.savedmodels.receiver import receivers
from estimator_migration.savedmodels.records import ExampleFeature, MetaGraph, SavedModel, Tensor, Vocabulary

_SHOWN = 10


def text_report(model: SavedModel) -> str:
    """Returns signatures, parsed features, vocabularies and assets, one per line."""
    return "\n".join(line for graph in model.graphs for line in _graph(model.path, graph))


def _graph(path: str, graph: MetaGraph) -> Iterator[str]:
    tags = ", ".join(graph.tags) or "no tags"
    yield f"{path}: TensorFlow {graph.tensorflow or 'of an unknown version'}, {tags}"
    for name, signature in graph.signatures.items():
        yield f"signature {name} ({signature.method or 'no method'})"
        yield from _tensors("takes", signature.inputs)
        yield from _tensors("returns", signature.outputs)
    if not graph.signatures:
        yield "no signatures"
    for parsing in graph.parsings:
        yield f"tf.Examples of {parsing.source or 'an argument of a function'}, parsed by {parsing.node}"
        yield from (f"  {name}: {_feature(feature)}" for name, feature in parsing.features.items())
    # A wide and a deep part may have a table of the same words each.
    yield from dict.fromkeys(f"vocabulary {_owner(one)}: {_words(one)}" for one in graph.vocabularies)
    yield f"assets: {', '.join(graph.assets) or 'none'}"
    for receiver in receivers(graph):
        yield from (f"{receiver.name}: {note}" for note in receiver.notes)


def _tensors(verb: str, tensors: Mapping[str, Tensor]) -> Iterator[str]:
    yield from (f"  {verb} {name}: {one.dtype} {_shape(one.shape)}" for name, one in tensors.items())


def _shape(shape: tuple[int | None, ...] | None) -> str:
    return "of any rank" if shape is None else f"[{', '.join('?' if size is None else str(size) for size in shape)}]"


def _feature(feature: ExampleFeature) -> str:
    if feature.kind == "fixed":
        default = "required" if feature.default is None else f"default {feature.default!r}"
        return f"{feature.dtype} {_shape(feature.shape)}, {default}"
    kinds = {"any number": "any number of", "sequence": "a sequence of", "ragged": "rows (ragged) of"}
    shape = f" {_shape(feature.shape)}" if feature.shape else ""
    return f"{kinds[feature.kind]} {feature.dtype}{shape}"


def _owner(vocabulary: Vocabulary) -> str:
    if vocabulary.feature:
        return f"of {vocabulary.feature}"
    return f"of the output {', '.join(vocabulary.outputs)}" if vocabulary.outputs else f"of the table {vocabulary.node}"


def _words(vocabulary: Vocabulary) -> str:
    if vocabulary.words is not None:
        shown = ", ".join(map(str, vocabulary.words[:_SHOWN]))
        more = f" and {len(vocabulary.words) - _SHOWN} more" if len(vocabulary.words) > _SHOWN else ""
        said = f"{len(vocabulary.words)} words: {shown}{more}"
    elif vocabulary.asset is not None:
        said = f"the file assets/{vocabulary.asset}" + (f", {vocabulary.size} words" if vocabulary.size else "")
    else:
        said = "its words are outside of the graph"
    if vocabulary.buckets:
        return f"{said}; {vocabulary.buckets} buckets for other words"
    return said if vocabulary.default is None else f"{said}; other words: {vocabulary.default}"
