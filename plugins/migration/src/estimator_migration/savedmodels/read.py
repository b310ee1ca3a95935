"""Reads the contents of a SavedModel without TensorFlow."""

from __future__ import annotations

import os
from pathlib import Path

from estimator_core.errors import ArgumentError, CheckpointCorruptError
from estimator_migration.savedmodels import wire
from estimator_migration.savedmodels.examples import parsings
from estimator_migration.savedmodels.graph import Graph, dtype_name, shape_of
from estimator_migration.savedmodels.records import METHODS, MetaGraph, SavedModel, Signature, Tensor
from estimator_migration.savedmodels.vocabularies import vocabularies

PROGRAM = "saved_model.pb"
_SERVE = "serve"
_INIT = "__saved_model_init_op"  # the initialisation of TensorFlow 2, which users do not call


def read_saved_model(directory: str | os.PathLike[str]) -> SavedModel:
    """Returns the contents of an exported model: signatures, parsed features, vocabularies and assets.

    Args:
        directory: the directory that contains `saved_model.pb`.

    Raises:
        ArgumentError: the directory holds no SavedModel.
        CheckpointCorruptError: the file is damaged or incomplete.

    Source: tensorflow/core/protobuf/saved_model.proto.
    """
    place = Path(directory)
    file = place / PROGRAM
    if not file.is_file():
        raise ArgumentError(_absent(place))
    try:
        found = wire.fields(file.read_bytes())
        graphs = [_graph(message) for message in wire.contents(found, 2)]
    except (CheckpointCorruptError, IndexError, ValueError, TypeError) as error:
        raise CheckpointCorruptError(
            f"{file} is not a SavedModel, or only a part of one: {error}. Copy it again."
        ) from error
    if not graphs:
        raise CheckpointCorruptError(f"{file} is not a SavedModel, or only a part of one: it has no graph.")
    graphs.sort(key=lambda graph: _SERVE not in graph.tags)
    return SavedModel(path=os.fspath(directory), graphs=tuple(graphs))


def _absent(place: Path) -> str:
    if not place.is_dir():
        return f"There is no directory {place}."
    if (place / "saved_model.pbtxt").is_file():
        return f"{place} holds a SavedModel as text, which cannot be read. Export it again without as_text=True."
    below = sorted(path.parent for path in place.glob(f"*/{PROGRAM}"))
    newest = f" Its newest export is {below[-1]}." if below else ""
    return f"{place} holds no {PROGRAM}.{newest}"


def _graph(message: bytes) -> MetaGraph:
    found = wire.fields(message)
    about = wire.message(found, 1)
    signatures = {name: _signature(one) for name, one in sorted(wire.entries(found, 5).items()) if name != _INIT}
    definition = wire.message(found, 2)
    functions = [wire.fields(one) for one in wire.contents(wire.message(definition, 2), 1)]
    graphs = [Graph(wire.contents(definition, 1)), *(Graph(wire.contents(one, 3)) for one in functions)]
    assets = [wire.fields(asset) for asset in wire.contents(found, 6)] or _collected_assets(found)
    paths = {wire.text(wire.message(asset, 1), 1).split(":")[0]: wire.text(asset, 2) for asset in assets}
    raw = {tensor.name: name for one in signatures.values() for name, tensor in one.inputs.items()}
    return MetaGraph(
        tags=wire.texts(about, 4),
        tensorflow=wire.text(about, 5),
        signatures=signatures,
        parsings=tuple(one for graph in graphs for one in parsings(graph)),
        vocabularies=tuple(one for graph in graphs for one in vocabularies(graph, paths, signatures, raw)),
        assets=tuple(dict.fromkeys(paths.values())),
    )


def _collected_assets(found: wire.Fields) -> list[wire.Fields]:
    """Returns the assets of tf.estimator exporters, in a collection: CollectionDef.any_list of packed AssetFileDef."""
    collection = wire.fields(wire.entries(found, 4).get("saved_model_assets", b""))
    return [wire.message(wire.fields(one), 2) for one in wire.contents(wire.message(collection, 5), 1)]


def _signature(message: bytes) -> Signature:
    found = wire.fields(message)
    method = wire.text(found, 3)
    inputs, outputs = (
        {name: _tensor(info) for name, info in sorted(wire.entries(found, number).items())} for number in (1, 2)
    )
    return Signature(method=METHODS.get(method, method), inputs=inputs, outputs=outputs)


def _tensor(message: bytes) -> Tensor:
    found = wire.fields(message)
    sparse = wire.message(found, 4)
    shape = (wire.contents(found, 3) or [b"\x18\x01"])[-1]  # without a shape: any rank
    return Tensor(
        name=wire.text(found, 1) or wire.text(sparse, 1),
        dtype=dtype_name(wire.integer(found, 2)),
        shape=shape_of(shape),
    )
