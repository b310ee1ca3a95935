"""Exports: what is served, and the contracts of those who write it. estimator-exporters writes the formats."""

from estimator_core._export.close_outputs import CloseOutputs as CloseOutputs
from estimator_core._export.contract import SERVING_METHODS as SERVING_METHODS
from estimator_core._export.contract import ChecksRequest as ChecksRequest
from estimator_core._export.contract import ExportCheck as ExportCheck
from estimator_core._export.contract import Exporter as Exporter
from estimator_core._export.contract import ExportFormat as ExportFormat
from estimator_core._export.contract import ExportRequest as ExportRequest
from estimator_core._export.contract import ExportsInBackground as ExportsInBackground
from estimator_core._export.contract import HoldsHostPart as HoldsHostPart
from estimator_core._export.contract import KnowsEvaluation as KnowsEvaluation
from estimator_core._export.contract import LoadedExport as LoadedExport
from estimator_core._export.contract import LoadedSignature as LoadedSignature
from estimator_core._export.contract import RehearsesExports as RehearsesExports
from estimator_core._export.contract import SignatureSpec as SignatureSpec
from estimator_core._export.directories import latest_export as latest_export
from estimator_core._export.features import Feature as Feature
from estimator_core._export.host_ops import Bucketize as Bucketize
from estimator_core._export.host_ops import Cast as Cast
from estimator_core._export.host_ops import Cross as Cross
from estimator_core._export.host_ops import DescribesOperations as DescribesOperations
from estimator_core._export.host_ops import EqualLengths as EqualLengths
from estimator_core._export.host_ops import Fit as Fit
from estimator_core._export.host_ops import FullLengths as FullLengths
from estimator_core._export.host_ops import HashBucket as HashBucket
from estimator_core._export.host_ops import HostOperation as HostOperation
from estimator_core._export.host_ops import HostProgram as HostProgram
from estimator_core._export.host_ops import Lengths as Lengths
from estimator_core._export.host_ops import Lookup as Lookup
from estimator_core._export.host_ops import NameOf as NameOf
from estimator_core._export.host_ops import ParsedFeature as ParsedFeature
from estimator_core._export.host_ops import ParseExamples as ParseExamples
from estimator_core._export.host_ops import Reshape as Reshape
from estimator_core._export.host_ops import Within as Within
from estimator_core._export.host_ops import host_programs as host_programs
from estimator_core._export.loading import load as load
from estimator_core._export.outputs import ClassificationOutput as ClassificationOutput
from estimator_core._export.outputs import EvalOutput as EvalOutput
from estimator_core._export.outputs import PredictOutput as PredictOutput
from estimator_core._export.outputs import RegressionOutput as RegressionOutput
from estimator_core._export.pending import PendingExport as PendingExport
from estimator_core._export.raw import RawSignature as RawSignature
from estimator_core._export.raw import Rename as Rename
from estimator_core._export.receivers import FitsTraining as FitsTraining
from estimator_core._export.receivers import ServingInputReceiver as ServingInputReceiver
from estimator_core._export.receivers import TensorServingInputReceiver as TensorServingInputReceiver
from estimator_core._export.receivers import build_raw_serving_input_receiver_fn as build_raw_serving_input_receiver_fn
from estimator_core._export.supervised import SupervisedInputReceiver as SupervisedInputReceiver
from estimator_core._export.supervised import (
    build_supervised_input_receiver_fn_from_input_fn as build_supervised_input_receiver_fn_from_input_fn,
)
