"""Exports: what is served, and the contracts of those who write it. estimator-exporters writes the formats."""

from typing import TYPE_CHECKING

from estimator_core import _moved
from estimator_core._export import (
    ClassificationOutput,
    EvalOutput,
    Exporter,
    ExportFormat,
    ExportRequest,
    ExportsInBackground,
    Feature,
    KnowsEvaluation,
    LoadedExport,
    LoadedSignature,
    PendingExport,
    PredictOutput,
    RawSignature,
    RegressionOutput,
    Rename,
    ServingInputReceiver,
    SignatureSpec,
    SupervisedInputReceiver,
    TensorServingInputReceiver,
    build_raw_serving_input_receiver_fn,
    build_supervised_input_receiver_fn_from_input_fn,
    latest_export,
    load,
)
from estimator_core._export.directories import collect_garbage, exports_in, new_export, remove_export
from estimator_core._export.outputs import ExportOutput

if TYPE_CHECKING:
    from estimator_inputs import (
        FixedLenFeature,
        FixedLenSequenceFeature,
        VarLenFeature,
        build_parsing_serving_input_receiver_fn,
        example_class,
    )

__all__ = [
    "ClassificationOutput",
    "EvalOutput",
    "ExportFormat",
    "ExportOutput",
    "ExportRequest",
    "Exporter",
    "ExportsInBackground",
    "Feature",
    "FixedLenFeature",
    "FixedLenSequenceFeature",
    "KnowsEvaluation",
    "LoadedExport",
    "LoadedSignature",
    "PendingExport",
    "PredictOutput",
    "RawSignature",
    "RegressionOutput",
    "Rename",
    "ServingInputReceiver",
    "SignatureSpec",
    "SupervisedInputReceiver",
    "TensorServingInputReceiver",
    "VarLenFeature",
    "build_parsing_serving_input_receiver_fn",
    "build_raw_serving_input_receiver_fn",
    "build_supervised_input_receiver_fn_from_input_fn",
    "collect_garbage",
    "example_class",
    "exports_in",
    "latest_export",
    "load",
    "new_export",
    "remove_export",
]

__getattr__ = _moved.names_of("export")
