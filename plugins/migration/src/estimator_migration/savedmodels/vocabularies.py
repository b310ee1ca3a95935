"""Finds the tables of a graph: their words or files, and the feature that is looked up in each."""

from __future__ import annotations

from collections.abc import Mapping

from estimator_migration.savedmodels import wire
from estimator_migration.savedmodels.examples import feature_behind
from estimator_migration.savedmodels.graph import Graph, Node
from estimator_migration.savedmodels.records import Signature, Vocabulary

_FROM_FILE = ("InitializeTableFromTextFile", "InitializeTableFromTextFileV2")
_FROM_LISTS = ("InitializeTable", "InitializeTableV2", "LookupTableImport", "LookupTableImportV2")
_FIND = ("LookupTableFind", "LookupTableFindV2")


def vocabularies(
    graph: Graph, assets: Mapping[str, str], signatures: Mapping[str, Signature], features: Mapping[str, str]
) -> list[Vocabulary]:
    """Returns one vocabulary for each table that a node fills.

    Args:
        graph: the nodes of the graph.
        assets: the files of assets, by the name of the tensor that holds the path.
        signatures: the signatures of the model.
        features: the names of raw features, by the name of their placeholder.
    """
    found: list[Vocabulary] = []
    for node in graph:
        if node.op not in _FROM_FILE and node.op not in _FROM_LISTS:
            continue
        lookups = [one for one in graph if one.op in _FIND and _table(graph, one) == _table(graph, node)]
        looked_up = {feature_behind(graph, one.inputs[1]) for one in lookups} - {None}
        feature = looked_up.pop() if len(looked_up) == 1 else None
        file = graph.source(node.inputs[1]) if node.op in _FROM_FILE else None
        size = wire.integer(node.attribute("vocab_size"), 3) if file else 0
        found.append(
            Vocabulary(
                node=_table(graph, node),
                feature=features.get(feature, feature) if feature else None,
                outputs=_outputs(signatures, lookups),
                words=None if file else _words(graph, node),
                asset=assets.get(file.name) if file else None,
                size=size if size > 0 else None,
                buckets=max((_buckets(graph, one) for one in lookups), default=0),
                default=_default(graph, lookups),
            )
        )
    return found


def _table(graph: Graph, node: Node) -> str:
    table = graph.source(node.inputs[0])
    while table is not None and table.op == "Identity":
        table = graph.source(table.inputs[0])
    return table.name if table is not None else node.inputs[0]


def _words(graph: Graph, node: Node) -> tuple[str | int, ...] | None:
    """Returns the words among the keys and values. The other side is a range of ids."""
    sides = [graph.constant(name) for name in node.inputs[1:3]]
    listed = [side for side in sides if side is not None]
    words = next((side for side in listed if side and isinstance(side[0], str)), listed[0] if listed else None)
    return None if words is None else tuple(word if isinstance(word, str) else int(word) for word in words)


def _buckets(graph: Graph, lookup: Node) -> int:
    """Returns the number of buckets for unknown words, from a hash operation in the scope of the lookup."""
    for node in graph:
        scope = node.name.rpartition("/")[0]
        if node.op.startswith("StringToHashBucket") and scope and lookup.name.startswith(f"{scope}/"):
            return wire.integer(node.attribute("num_buckets"), 3)
    return 0


def _default(graph: Graph, lookups: list[Node]) -> int | str | None:
    values = [graph.constant(one.inputs[2]) for one in lookups]
    first = next((each[0] for each in values if each), None)
    return int(first) if isinstance(first, float) else first


def _outputs(signatures: Mapping[str, Signature], lookups: list[Node]) -> tuple[str, ...]:
    made = {f"{one.name}:0" for one in lookups}
    return tuple(
        f"{name}/{output}"
        for name, signature in signatures.items()
        for output, tensor in signature.outputs.items()
        if tensor.name in made
    )
