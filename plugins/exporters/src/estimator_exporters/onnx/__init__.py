"""The `onnx` format: ONNX graphs."""

from estimator_exporters.onnx.format import OnnxFormat as OnnxFormat
