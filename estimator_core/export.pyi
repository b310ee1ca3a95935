"""The public names of `export.py`, typed; those that live in a package of their own too."""

from estimator_core._export import Bucketize as Bucketize
from estimator_core._export import Cast as Cast
from estimator_core._export import ChecksRequest as ChecksRequest
from estimator_core._export import ClassificationOutput as ClassificationOutput
from estimator_core._export import CloseOutputs as CloseOutputs
from estimator_core._export import Cross as Cross
from estimator_core._export import DescribesOperations as DescribesOperations
from estimator_core._export import EqualLengths as EqualLengths
from estimator_core._export import EvalOutput as EvalOutput
from estimator_core._export import ExportCheck as ExportCheck
from estimator_core._export import Exporter as Exporter
from estimator_core._export import ExportFormat as ExportFormat
from estimator_core._export import ExportRequest as ExportRequest
from estimator_core._export import ExportsInBackground as ExportsInBackground
from estimator_core._export import Feature as Feature
from estimator_core._export import Fit as Fit
from estimator_core._export import FullLengths as FullLengths
from estimator_core._export import HashBucket as HashBucket
from estimator_core._export import HostOperation as HostOperation
from estimator_core._export import HostProgram as HostProgram
from estimator_core._export import KnowsEvaluation as KnowsEvaluation
from estimator_core._export import Lengths as Lengths
from estimator_core._export import LoadedExport as LoadedExport
from estimator_core._export import LoadedSignature as LoadedSignature
from estimator_core._export import Lookup as Lookup
from estimator_core._export import NameOf as NameOf
from estimator_core._export import ParsedFeature as ParsedFeature
from estimator_core._export import ParseExamples as ParseExamples
from estimator_core._export import PendingExport as PendingExport
from estimator_core._export import PredictOutput as PredictOutput
from estimator_core._export import RawSignature as RawSignature
from estimator_core._export import RegressionOutput as RegressionOutput
from estimator_core._export import Rename as Rename
from estimator_core._export import Reshape as Reshape
from estimator_core._export import ServingInputReceiver as ServingInputReceiver
from estimator_core._export import SignatureSpec as SignatureSpec
from estimator_core._export import SupervisedInputReceiver as SupervisedInputReceiver
from estimator_core._export import TensorServingInputReceiver as TensorServingInputReceiver
from estimator_core._export import Within as Within
from estimator_core._export import build_raw_serving_input_receiver_fn as build_raw_serving_input_receiver_fn
from estimator_core._export import (
    build_supervised_input_receiver_fn_from_input_fn as build_supervised_input_receiver_fn_from_input_fn,
)
from estimator_core._export import host_programs as host_programs
from estimator_core._export import latest_export as latest_export
from estimator_core._export import load as load
from estimator_core._export.directories import collect_garbage as collect_garbage
from estimator_core._export.directories import exports_in as exports_in
from estimator_core._export.directories import new_export as new_export
from estimator_core._export.directories import remove_export as remove_export
from estimator_core._export.outputs import ExportOutput as ExportOutput
from estimator_inputs import FixedLenFeature as FixedLenFeature
from estimator_inputs import FixedLenSequenceFeature as FixedLenSequenceFeature
from estimator_inputs import VarLenFeature as VarLenFeature
from estimator_inputs import build_parsing_serving_input_receiver_fn as build_parsing_serving_input_receiver_fn
from estimator_inputs import example_class as example_class
