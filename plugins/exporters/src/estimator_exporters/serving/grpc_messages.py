"""The gRPC messages of the Open Inference Protocol. A table defines them, because generated code would pin versions.

Source: `open_inference_grpc.proto` of the Open Inference Protocol. Statistics and the index follow the proto of Triton.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

SERVICE = "inference.GRPCInferenceService"
_PARAMETERS = "parameters:map<InferParameter>"
# The format is `name:type`, numbered from 1. `*` marks repeated fields. The fields of InferParameter are alternatives.
_MESSAGES = {
    "ServerLiveRequest": "",
    "ServerLiveResponse": "live:bool",
    "ServerReadyRequest": "",
    "ServerReadyResponse": "ready:bool",
    "ModelReadyRequest": "name:string version:string",
    "ModelReadyResponse": "ready:bool",
    "ServerMetadataRequest": "",
    "ServerMetadataResponse": "name:string version:string extensions:*string",
    "ModelMetadataRequest": "name:string version:string",
    "TensorMetadata": "name:string datatype:string shape:*int64",
    "ModelMetadataResponse": (
        "name:string versions:*string platform:string inputs:*TensorMetadata outputs:*TensorMetadata"
    ),
    "InferParameter": "bool_param:bool int64_param:int64 string_param:string double_param:double uint64_param:uint64",
    "InferTensorContents": (
        "bool_contents:*bool int_contents:*int32 int64_contents:*int64 uint_contents:*uint32 uint64_contents:*uint64 "
        "fp32_contents:*float fp64_contents:*double bytes_contents:*bytes"
    ),
    "InferInputTensor": f"name:string datatype:string shape:*int64 {_PARAMETERS} contents:InferTensorContents",
    "InferRequestedOutputTensor": f"name:string {_PARAMETERS}",
    "ModelInferRequest": (
        f"model_name:string model_version:string id:string {_PARAMETERS} inputs:*InferInputTensor "
        "outputs:*InferRequestedOutputTensor raw_input_contents:*bytes"
    ),
    "InferOutputTensor": f"name:string datatype:string shape:*int64 {_PARAMETERS} contents:InferTensorContents",
    "ModelInferResponse": (
        f"model_name:string model_version:string id:string {_PARAMETERS} outputs:*InferOutputTensor "
        "raw_output_contents:*bytes"
    ),
    "StatisticDuration": "count:uint64 ns:uint64",
    "InferStatistics": (
        "success:StatisticDuration fail:StatisticDuration queue:StatisticDuration compute_input:StatisticDuration "
        "compute_infer:StatisticDuration compute_output:StatisticDuration cache_hit:StatisticDuration "
        "cache_miss:StatisticDuration"
    ),
    "InferBatchStatistics": (
        "batch_size:uint64 compute_input:StatisticDuration compute_infer:StatisticDuration "
        "compute_output:StatisticDuration"
    ),
    "ModelStatistics": (
        "name:string version:string last_inference:uint64 inference_count:uint64 execution_count:uint64 "
        "inference_stats:InferStatistics batch_stats:*InferBatchStatistics"
    ),
    "ModelStatisticsRequest": "name:string version:string",
    "ModelStatisticsResponse": "model_stats:*ModelStatistics",
}
_Field = descriptor_pb2.FieldDescriptorProto


def _classes() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="open_inference.proto", package="inference", syntax="proto3")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for number, field in enumerate(fields.split(), 1):
            _add_field(message, number, *field.split(":"))
        if name == "InferParameter":
            message.oneof_decl.add(name="parameter_choice")
            for field in message.field:
                field.oneof_index = 0
    pool = descriptor_pool.DescriptorPool()  # a separate pool, because other packages have messages with these names
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"inference.{name}")) for name in _MESSAGES
    }


def _add_field(message: descriptor_pb2.DescriptorProto, number: int, name: str, kind: str) -> None:
    if kind.startswith("map<"):
        entry = message.nested_type.add(name=f"{name.title()}Entry")
        entry.options.map_entry = True
        _add_field(entry, 1, "key", "string")
        _add_field(entry, 2, "value", kind[4:-1])
        kind = f"*{message.name}.{entry.name}"
    field = message.field.add(name=name, number=number)
    field.label = _Field.LABEL_REPEATED if kind.startswith("*") else _Field.LABEL_OPTIONAL
    kind = kind.lstrip("*")
    if kind[0].isupper():
        field.type, field.type_name = _Field.TYPE_MESSAGE, f".inference.{kind}"
    else:
        field.type = _Field.Type.Value(f"TYPE_{kind.upper()}")


MESSAGES = _classes()
