"""The tf.Example message, built from its definition with protobuf only."""

from __future__ import annotations

import functools
from typing import Any

_PACKAGE = "tensorflow"
_KINDS = (("bytes_list", "BytesList"), ("float_list", "FloatList"), ("int64_list", "Int64List"))


@functools.cache
def _messages() -> Any:
    """Returns a descriptor pool with the definitions."""
    from google.protobuf import descriptor_pb2, descriptor_pool

    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="example.proto", package=_PACKAGE, syntax="proto3")

    def message(name: str) -> Any:
        return file.message_type.add(name=name)

    def field(
        owner: Any,
        name: str,
        number: int,
        kind: int,
        *,
        repeated: bool = False,
        type_name: str | None = None,
        **more: Any,
    ) -> None:
        label = kinds.LABEL_REPEATED if repeated else kinds.LABEL_OPTIONAL
        owner.field.add(name=name, number=number, type=kind, label=label, type_name=type_name, **more)

    values = (kinds.TYPE_BYTES, kinds.TYPE_FLOAT, kinds.TYPE_INT64)
    for (_, name), kind in zip(_KINDS, values, strict=True):
        field(message(name), "value", 1, kind, repeated=True)
    feature = message("Feature")
    feature.oneof_decl.add(name="kind")
    for number, (name, type_name) in enumerate(_KINDS, start=1):
        field(feature, name, number, kinds.TYPE_MESSAGE, type_name=f".{_PACKAGE}.{type_name}", oneof_index=0)
    features = message("Features")
    entry = features.nested_type.add(name="FeatureEntry")
    entry.options.map_entry = True
    field(entry, "key", 1, kinds.TYPE_STRING)
    field(entry, "value", 2, kinds.TYPE_MESSAGE, type_name=f".{_PACKAGE}.Feature")
    field(features, "feature", 1, kinds.TYPE_MESSAGE, repeated=True, type_name=f".{_PACKAGE}.Features.FeatureEntry")
    field(message("Example"), "features", 1, kinds.TYPE_MESSAGE, type_name=f".{_PACKAGE}.Features")
    lists = message("FeatureList")
    field(lists, "feature", 1, kinds.TYPE_MESSAGE, repeated=True, type_name=f".{_PACKAGE}.Feature")
    all_lists = message("FeatureLists")
    entry = all_lists.nested_type.add(name="FeatureListEntry")
    entry.options.map_entry = True
    field(entry, "key", 1, kinds.TYPE_STRING)
    field(entry, "value", 2, kinds.TYPE_MESSAGE, type_name=f".{_PACKAGE}.FeatureList")
    list_entry = f".{_PACKAGE}.FeatureLists.FeatureListEntry"
    field(all_lists, "feature_list", 1, kinds.TYPE_MESSAGE, repeated=True, type_name=list_entry)
    sequence = message("SequenceExample")
    field(sequence, "context", 1, kinds.TYPE_MESSAGE, type_name=f".{_PACKAGE}.Features")
    field(sequence, "feature_lists", 2, kinds.TYPE_MESSAGE, type_name=f".{_PACKAGE}.FeatureLists")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return pool


def _class_of(name: str) -> Any:
    from google.protobuf import message_factory

    return message_factory.GetMessageClass(_messages().FindMessageTypeByName(f"{_PACKAGE}.{name}"))


@functools.cache
def sequence_example_class() -> Any:
    """Returns the message class of tf.SequenceExample.

    Example:
        >>> record = sequence_example_class()()
        >>> record.feature_lists.feature_list["words"].feature.add().bytes_list.value.append(b"ape")
        >>> len(record.SerializeToString())
        22

    Source: `tensorflow/core/example/example.proto`.
    """
    return _class_of("SequenceExample")


@functools.cache
def example_class() -> Any:
    """Returns the message class of tf.Example. Its own descriptor pool prevents conflicts with an installed TensorFlow.

    Example:
        >>> example = example_class()()
        >>> example.features.feature["age"].int64_list.value.append(3)
        >>> len(example.SerializeToString())
        16

    Source: `tensorflow/core/example/{example,feature}.proto`.
    """
    return _class_of("Example")
